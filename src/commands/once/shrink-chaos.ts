import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import type { Problems } from "../../cli/options/problems.ts";
import type { ChaosOptions } from "../../cluster/faults/chaos-plan.ts";
import { shrink } from "../../cluster/faults/shrink.ts";
import { hasRun } from "../../cluster/run/run-until.ts";
import { messageOf } from "../../errors.ts";
import { numbered } from "../../system/amounts.ts";
import { chaosText } from "../fault/chaos-text.ts";
import { CommandFailed, executeOnce, readSecrets } from "./execute-once.ts";
import type { OnceInput } from "./once-options.ts";

/** Refuses to shrink what is not one plan of faults, or would leave several clusters. */
export function checkShrink(
  { shrink: tries, chaos: plan, shards, keepOnFailure = false }: Partial<OnceInput>,
  problems: Problems,
): void {
  if (tries === undefined) return;
  if (plan === undefined) problems.add("--shrink: requires --chaos");
  if (shards !== undefined) problems.add("--shrink: cannot be combined with --shards");
  if (keepOnFailure) problems.add("--shrink: cannot be combined with --keep-on-failure");
}

type ShrinkingInput = OnceInput & { readonly chaos: ChaosOptions; readonly shrink: number };

/**
 * Runs the command with chaos. If it fails, runs it again on new clusters with fewer faults of the
 * same plan, and prints the smallest plan that still fails. Throws as `executeOnce` does for the
 * first run.
 */
export async function shrinkChaos(
  kind: BackendKind,
  given: ShrinkingInput,
  context: Context,
): Promise<void> {
  const input = { ...given, ...(await readSecrets(given, context)) };
  const begun: number[] = [];
  try {
    const onFault = ({ number }: { readonly number: number }): void => void begun.push(number);
    await executeOnce(kind, { ...input, onFault }, context);
  } catch (error) {
    if (!context.signal.aborted && hasFailed(error, input))
      await printSmallest(kind, input, begun, context);
    throw error;
  }
}

/** Whether the command has begun and failed by itself. A mistyped one fails without any fault. */
const hasFailed = (error: unknown, { local }: Pick<OnceInput, "local">): boolean =>
  error instanceof CommandFailed && hasRun(error.status, !local);

/** A try with some faults of the plan. The files that the user wants are those of the first run. */
export const tryOf = ({ chaos, ...input }: ShrinkingInput, only: readonly number[]): OnceInput => ({
  ...input,
  junit: undefined,
  report: undefined,
  logsDir: undefined,
  saveOnFailure: undefined,
  cache: undefined,
  fetch: [],
  summary: false,
  shrink: undefined,
  chaos: only.length === 0 ? undefined : { ...chaos, only },
});

async function printSmallest(
  kind: BackendKind,
  input: ShrinkingInput,
  begun: readonly number[],
  context: Context,
): Promise<void> {
  const { progress, signal } = context;
  if (begun.length === 0) {
    progress.note("No fault had begun when the command failed, so there is nothing to leave out.");
    return;
  }
  const fails = async (only: readonly number[]): Promise<boolean> => {
    const which = only.length === 0 ? "without any fault" : `with faults ${only.join(", ")}`;
    progress.note(`Trying ${which}.`);
    try {
      await executeOnce(kind, tryOf(input, only), context);
      return false;
    } catch (error) {
      signal.throwIfAborted();
      if (hasFailed(error, input)) return true;
      progress.warn(`This try counts as one without a failure: ${messageOf(error)}`);
      return false;
    }
  };
  const { smallest, isSmallest } = await shrink(begun, input.shrink, fails);
  const repeat = `To repeat it, pass --chaos ${chaosText({ ...input.chaos, only: smallest })}`;
  if (smallest.length === 0)
    progress.note(`The command also fails without any fault of ${begun.length}.`);
  else if (isSmallest)
    progress.note(
      `The smallest plan that still fails has ${numbered(smallest.length, "fault")} of ${begun.length}. ${repeat}`,
    );
  else
    progress.note(
      `The tries are used up. The smallest plan that failed has ${numbered(smallest.length, "fault")} of ${begun.length}. ${repeat}`,
    );
}
