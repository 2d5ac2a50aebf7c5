/**
 * Replacements of what the sources use and Node lacks, or does otherwise. The build of the library inserts them, because a library must not
 * change its user's globals. Drop the first two with the support of Node 20: Node 22 has both.
 */
import { setMaxListeners } from "node:events";

/** For `Promise.withResolvers`. */
export function withResolvers<Value>(): PromiseWithResolvers<Value> {
  const parts: Partial<PromiseWithResolvers<Value>> = {};
  const promise = new Promise<Value>((resolve, reject) =>
    Object.assign(parts, { resolve, reject }),
  );
  return Object.assign(parts, { promise }) as PromiseWithResolvers<Value>;
}

/** For `Map.groupBy`. */
export function groupBy<Key, Item>(
  items: Iterable<Item>,
  keyOf: (item: Item, index: number) => Key,
): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
    index += 1;
  }
  return groups;
}

/** Node warns of a leak when a signal gets its eleventh listener, but many have one for each node of a cluster. */
function withoutLimit(signal: AbortSignal): AbortSignal {
  setMaxListeners(0, signal);
  return signal;
}

export class AbortController extends globalThis.AbortController {
  constructor() {
    super();
    withoutLimit(this.signal);
  }
}

/** For `AbortSignal.any`. */
export const anySignal = (signals: readonly AbortSignal[]): AbortSignal =>
  withoutLimit(AbortSignal.any([...signals]));

/** For `AbortSignal.timeout`. */
export const timeoutSignal = (ms: number): AbortSignal => withoutLimit(AbortSignal.timeout(ms));

/** For `bun:ffi`, which Node lacks: what calls functions of the C library does without them if none can be loaded. */
export const foreignFunctions = {
  dlopen: (): never => {
    throw new Error("Node loads no functions of the C library");
  },
};
