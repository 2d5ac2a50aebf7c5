import { ClusterError, hasErrorId } from "../../errors.ts";
import type { Observed } from "../../platform/faults/fault-kind.ts";
import { type FaultRequest, faultRows } from "../../platform/faults/fault-kinds.ts";
import { outsideLine } from "../../system/printable.ts";
import { poll } from "../../system/retry.ts";
import type { Clock } from "../../system/runtime.ts";
import { ruleOf, waits } from "../../system/waits.ts";

/** Whether nodes that restart with the fault don't answer. */
const isAway = ({ kind }: FaultRequest, error: unknown): boolean =>
  faultRows[kind].restarts === true &&
  (hasErrorId(error, "connection-failed") || hasErrorId(error, "deadline-passed"));

/** Resolves also if a node that restarts is away before it has answered. */
export const unlessAway = async (request: FaultRequest, started: Promise<void>): Promise<void> =>
  started.catch((error: unknown) => {
    if (!isAway(request, error)) throw error;
  });

/**
 * Throws `machine-not-set-up` if a node's kernel can't have the fault, and `remote-command-failed` if nothing could tell
 * the nodes with the fault from what they were like before. The nodes' names are in the order of `before`.
 */
export function assertCanShow(
  { kind }: FaultRequest,
  before: readonly Observed[],
  names: readonly string[],
): void {
  const lacks = before.map(({ measured }) => measured.get("lack"));
  const lack = lacks.find((each) => each !== undefined);
  if (lack !== undefined) {
    const nodes = names.filter((_, place) => lacks[place] === lack);
    throw new ClusterError(
      "machine-not-set-up",
      `Cannot begin on ${nodes.join(", ")}: ${outsideLine(lack, 400)}.`,
      { facts: { fault: kind, nodes } },
    );
  }
  const { canShow, state } = faultRows[kind];
  if (canShow?.(before) ?? true) return;
  throw new ClusterError(
    "remote-command-failed",
    `The fault would not show: ${state(before)} already.`,
    {
      hint: "Heal the faults that these nodes have, and make sure that they answer each other's pings.",
      facts: { fault: kind },
    },
  );
}

interface Looking {
  readonly request: FaultRequest;
  readonly before: readonly Observed[];
  readonly observe: () => Promise<readonly Observed[]>;
  readonly clock: Clock;
}

/** Observes until a fault shows, and describes the difference. Throws `remote-command-failed` if it doesn't. */
export async function awaitEvidence(
  { request, before, observe, clock }: Looking,
  signal: AbortSignal,
): Promise<string> {
  const rule = {
    ...ruleOf(faultRows[request.kind].restarts ? waits.faultRestart : waits.faultEvidence, clock),
    tolerates: (error: unknown) =>
      hasErrorId(error, "remote-command-failed") || isAway(request, error),
  };
  const look = async (): Promise<string> => faultEvidence(request, before, await observe());
  return (await poll(look, rule, signal)) ?? "";
}

/**
 * Compares observations from before and after the beginning of a fault, and describes the difference. Throws
 * `remote-command-failed` if the fault doesn't show.
 */
export function faultEvidence(
  request: FaultRequest,
  before: readonly Observed[],
  after: readonly Observed[],
): string {
  const row = faultRows[request.kind];
  const found = `${row.state(after, before)}, before: ${row.state(before)}`;
  if (row.shows(request, before, after)) return found;
  throw new ClusterError(
    "remote-command-failed",
    `The fault was begun, but does not show: ${found}.`,
    {
      hint: "It has been healed. Make sure that it lasts long enough, and that nothing on the nodes undoes it.",
      facts: { fault: request.kind },
    },
  );
}
