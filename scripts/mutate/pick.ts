/** Picks `count` random entries and keeps their order. The same seed picks the same entries. */
export function pick<T>(entries: readonly T[], count: number, seed: number): readonly T[] {
  const next = randomNumbers(seed);
  const lots = entries.map((entry, index) => ({ entry, index, lot: next() }));
  return lots
    .toSorted((one, other) => one.lot - other.lot)
    .slice(0, count)
    .toSorted((one, other) => one.index - other.index)
    .map(({ entry }) => entry);
}

/** Random numbers from 0 to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
