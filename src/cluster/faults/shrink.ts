interface Shrunk<Item> {
  readonly smallest: readonly Item[];
  /** Whether every item of it is needed. If not, the tries were used up. */
  readonly isSmallest: boolean;
}

/**
 * Returns a smaller list that still fails: none at all, or what is left when halves, then quarters and so on are left
 * out (delta debugging, Zeller and Hildebrandt 2002).
 */
export async function shrink<Item>(
  all: readonly Item[],
  tries: number,
  fails: (some: readonly Item[]) => Promise<boolean>,
): Promise<Shrunk<Item>> {
  const budget = { left: tries };
  const tryWith = async (some: readonly Item[]): Promise<boolean> => {
    budget.left -= 1;
    return budget.left >= 0 && (await fails(some));
  };
  if (all.length > 0 && (await tryWith([]))) return { smallest: [], isSmallest: true };
  let smallest = all;
  let pieces = 2;
  let isEachNeeded = false;
  while (smallest.length > 1 && budget.left > 0) {
    const size = Math.ceil(smallest.length / pieces);
    const smaller = await firstFailing(smallest, size, tryWith);
    if (smaller !== undefined) {
      smallest = smaller;
      pieces = Math.max(pieces - 1, 2);
    } else if (size === 1) {
      isEachNeeded = budget.left >= 0;
      break;
    } else pieces = Math.min(pieces * 2, smallest.length);
  }
  return { smallest, isSmallest: isEachNeeded || (smallest.length < 2 && tries > 0) };
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
