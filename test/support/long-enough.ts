/**
 * Makes an attempt whose time limit must not pass before the work has come as far as the test wants it to be interrupted. An attempt that returns
 * false was too short for this computer, and is followed by one with four times its limit. Throws if even hours were too short.
 */
export async function longEnough(
  firstMs: number,
  attempt: (limitMs: number) => Promise<boolean>,
): Promise<void> {
  for (let limitMs = firstMs; !(await attempt(limitMs));) {
    limitMs *= 4;
    if (limitMs > 86_400_000) throw new Error("the work never comes as far as the test wants");
  }
}
