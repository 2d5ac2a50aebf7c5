/**
 * Replacements of what the sources use and Node lacks, or does otherwise. The build of the library inserts them, because a library must not
 * change its user's globals.
 */
import { setMaxListeners } from "node:events";

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
