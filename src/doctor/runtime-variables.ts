import { type Check, localLimitMs, pass, warn } from "../model/check.ts";

/**
 * Variables that the Bun inside an executable obeys before any of our code runs, so that no build option and no code of ours can prevent it.
 * BUN_BE_BUN isn't looked at: where it takes effect, it is Bun that runs and not this check.
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
