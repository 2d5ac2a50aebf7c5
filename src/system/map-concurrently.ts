/**
 * Runs `task` for every item, at most `limit` at once, and resolves with the results in the items' order. After the
 * first failure no further task begins. Tasks in progress are awaited, then the first failure is thrown. An aborted
 * signal counts as a failure.
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item, index: number) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures: unknown[] = [];
  const pending = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of pending) {
      if (failures.length > 0) return;
      try {
        signal.throwIfAborted();
        results[index] = await task(item, index);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
