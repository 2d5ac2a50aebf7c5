import type { Problems } from "../../cli/options/problems.ts";
import { type ChaosOptions, chaosProblems, usualChaos } from "../../cluster/faults/chaos-plan.ts";
import { faultProblems } from "../../cluster/faults/plan-fault.ts";
import {
  type FaultRequest,
  commonOptions,
  faultKinds,
  faultRows,
} from "../../platform/faults/fault-kinds.ts";
import { optionName } from "../../references.ts";

/** The values of the command. Values that the fault doesn't need are absent. */
export type FaultInput = Omit<FaultRequest, "kind"> &
  Omit<ChaosOptions, "seed"> & {
    readonly action: FaultRequest["kind"] | "random" | "list" | "heal";
    readonly seed: number | undefined;
    readonly dryRun: boolean;
  };

export function checkFault(given: Partial<FaultInput>, problems: Problems): void {
  const { action, nodes = [], durationMs = 1000 } = given;
  const takesNone = action === "list" || action === "random";
  if (takesNone && nodes.length > 0) problems.add(`NODE: ${action} takes no nodes`);
  if (action !== "random")
    for (const [flag, value] of [
      ["--dry-run", given.dryRun === true],
      ["--seed", given.seed !== undefined],
      ["--recover", given.recoverMs !== undefined],
      ["--only", given.only !== undefined],
    ])
      if (value === true) problems.add(`${flag}: only for random`);
  if (action === undefined) return;
  if (action === "list" || action === "heal") {
    // Somebody who names a fault's nodes so would heal all faults.
    for (const name of givenOptions(given)) problems.add(`${optionName(name)}: not for ${action}`);
    return;
  }
  const {
    everyMs = usualChaos.everyMs,
    kinds = usualChaos.kinds,
    targets = usualChaos.targets,
    seed = 0,
  } = given;
  const found =
    action === "random"
      ? chaosProblems({ ...given, everyMs, kinds, targets, seed })
      : faultProblems({ ...given, durationMs, kind: action });
  for (const problem of found) problems.add(problem);
}

const optionNames = new Set(
  [commonOptions, ...faultKinds.map((kind) => faultRows[kind].options)].flatMap((options) =>
    Object.keys(options),
  ),
);

/** The options of faults that are given: switches may be off, and lists empty. */
function givenOptions(given: Partial<FaultInput>): readonly string[] {
  const values: Readonly<Record<string, unknown>> = { ...given };
  return [...optionNames].filter((name) => {
    const value = values[name];
    return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
  });
}
