/** Waits until the condition holds. Throws if that takes longer than the limit. A check that throws counts as false. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  { limitMs = 30_000, everyMs = 10 } = {},
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
