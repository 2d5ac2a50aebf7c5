import type { Problems } from "../../cli/options/problems.ts";
import {
  type ChaosOptions,
  chaosProblems,
  isGiven,
  usualChaos,
} from "../../cluster/faults/chaos-plan.ts";
import { faultProblems } from "../../cluster/faults/plan-fault.ts";
import {
  type FaultOptionValues,
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
      // Their defaults count as not given.
      ["--every", given.everyMs !== undefined && given.everyMs !== usualChaos.everyMs],
      ["--kinds", (given.kinds ?? usualChaos.kinds).join() !== usualChaos.kinds.join()],
      ["--targets", (given.targets ?? usualChaos.targets).join() !== usualChaos.targets.join()],
      ["--recover", given.recoverMs !== undefined],
      ["--only", given.only !== undefined],
    ])
      if (value === true) problems.add(`${flag}: only for random`);
  if (action === undefined) return;
  if (["random", "list", "heal"].includes(action) && (durationMs < 1 || durationMs > longestMs))
    problems.add(`${optionName("durationMs")}: must be from 1ms to 24d`);
  if (action === "list" || action === "heal") {
    // They look as if they chose some of the faults.
    for (const name of optionsOfFaults)
      if (isGiven(given[name])) problems.add(`${optionName(name)}: not for ${action}`);
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

/** A timer of the runtime holds 31 bits. */
const longestMs = 2 ** 31 - 1;

const optionsOfFaults = [
  ...new Set(
    [...faultKinds.map((kind) => faultRows[kind].options), commonOptions].flatMap(Object.keys),
  ),
] as readonly (keyof FaultOptionValues)[];
