import { type Check, localLimitMs, pass, warn } from "../model/check.ts";

/**
 * Checks variables that the Bun inside an executable obeys before any of our code runs. Neither a build option nor our code can prevent this.
 * BUN_BE_BUN isn't checked: if it takes effect, Bun runs instead of this check.
 */
export function runtimeVariablesCheck(inherited: readonly string[]): Check {
  const isSteered = inherited.includes("BUN_OPTIONS");
  const outcome = isSteered
    ? warn(
        "BUN_OPTIONS is set: it can make this program run other code.",
        "Unset it, and find out who set it: unset BUN_OPTIONS",
      )
    : pass("no variable changes how this program runs");
  return { name: "runtime", limitMs: localLimitMs, run: () => Promise.resolve(outcome) };
}
