/**
 * What the sources use of the language that Node 20 hasn't got yet. The build of the library puts these in their place, since a library must
 * not add to its user's globals. It can go when Node 20 needn't be served any more: 22 has the first two, 24 all.
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

/** For `RegExp.escape`; for patterns that are not read as part of another word's escape, as all of ours are. */
export const escapePattern = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
