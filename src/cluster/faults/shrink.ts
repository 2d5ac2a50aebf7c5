/**
 * Returns a smaller list that still fails, by leaving out halves, then quarters and so on (delta debugging, Zeller and
 * Hildebrandt 2002). Every item of the result is needed unless the tries were used up.
 */
export async function shrink<Item>(
  all: readonly Item[],
  tries: number,
  fails: (some: readonly Item[]) => Promise<boolean>,
): Promise<readonly Item[]> {
  const budget = { left: tries };
  let smallest = all;
  let pieces = 2;
  while (smallest.length > 1 && budget.left > 0) {
    const size = Math.ceil(smallest.length / pieces);
    const smaller = await firstFailing(smallest, size, async (some) => {
      budget.left -= 1;
      return budget.left >= 0 && (await fails(some));
    });
    if (smaller !== undefined) {
      smallest = smaller;
      pieces = Math.max(pieces - 1, 2);
    } else if (size === 1) break;
    else pieces = Math.min(pieces * 2, smallest.length);
  }
  return smallest;
}

/** Tries the list without each of its pieces. */
async function firstFailing<Item>(
  items: readonly Item[],
  size: number,
  fails: (some: readonly Item[]) => Promise<boolean>,
): Promise<readonly Item[] | undefined> {
  for (let begin = 0; begin < items.length; begin += size) {
    const some = items.filter((_, index) => index < begin || index >= begin + size);
    if (await fails(some)) return some;
  }
  return undefined;
}
