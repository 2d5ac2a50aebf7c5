/**
 * Replacements of language features that the sources use and Node 20 lacks. The build of the library inserts them, because a library must
 * not change its user's globals. Drop them with the support of Node 20: Node 22 has both.
 */

/** For `Promise.withResolvers`. */
export function withResolvers<Value>(): PromiseWithResolvers<Value> {
  const parts: Partial<PromiseWithResolvers<Value>> = {};
  const promise = new Promise<Value>((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return Object.assign(parts, { promise }) as PromiseWithResolvers<Value>;
}

/** For `Map.groupBy`. */
export function groupBy<Key, Item>(items: Iterable<Item>, keyOf: (item: Item, index: number) => Key): Map<Key, Item[]> {
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
