/**
 * Waits until the condition holds. A check that throws counts as false. Throws if that takes longer than the limit, which is for tests that run by
 * themselves: a busy computer may take minutes for what is usually done at once.
 */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  { limitMs = 250_000, everyMs = 10 } = {},
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await answerOf(isSo))) {
    if (Date.now() > end) throw new Error(`not in ${limitMs / 1000} s: ${what}`);
    await Bun.sleep(everyMs);
  }
}

async function answerOf(isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await isSo();
  } catch {
    return false;
  }
}
