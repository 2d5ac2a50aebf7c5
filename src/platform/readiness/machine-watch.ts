import { ClusterError } from "../../errors.ts";
import { runCommand } from "../../references.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { type Clock, passedMs } from "../../system/runtime.ts";
import { watchdog } from "../../system/time-limit.ts";

/** The backend's record of the cluster, refreshed from time to time. */
export interface MachineWatch {
  /**
   * Returns the latest record, or an older one while the backend has a transient failure or doesn't answer in time.
   * Throws `machine-failed` if a machine has ended or is ending.
   */
  current(mustBeFresh: boolean, signal: AbortSignal): Promise<ClusterRecord>;
}

export interface MachineWatchRequest {
  readonly cluster: ClusterRecord;
  readonly describe: (signal: AbortSignal) => Promise<ClusterRecord>;
  /** The time of `passedMs` after which nothing is waited for. */
  readonly deadlineMs: number;
  readonly clock: Clock;
}

/** A backend that doesn't answer must not hold up the questions to the nodes. */
const describeLimitMs = 15_000;
const usualPauseMs = 15_000;
/** If a node doesn't answer, its end must be noticed soon. */
const shortPauseMs = 3000;

export function createMachineWatch({
  cluster,
  describe,
  deadlineMs,
  clock,
}: MachineWatchRequest): MachineWatch {
  const latest = { record: cluster, askedAtMs: passedMs(clock) };
  const refresh = async (signal: AbortSignal): Promise<ClusterRecord> => {
    using limit = watchdog(Math.min(describeLimitMs, deadlineMs - passedMs(clock)), signal);
    try {
      return await describe(limit.signal);
    } catch (error) {
      if (limit.hasExpired() || (error instanceof ClusterError && error.transient))
        return latest.record;
      throw error;
    }
  };
  return {
    current: async (mustBeFresh, signal) => {
      const age = passedMs(clock) - latest.askedAtMs;
      if (age >= (mustBeFresh ? shortPauseMs : usualPauseMs)) {
        latest.record = await refresh(signal);
        latest.askedAtMs = passedMs(clock);
      }
      assertAlive(cluster, latest.record);
      return latest.record;
    },
  };
}

const hint = "This cluster cannot become ready. Create a new one.";

function assertAlive(before: ClusterRecord, now: ClusterRecord): void {
  const present = new Map(now.nodes.map((node) => [node.id, node]));
  const known = [
    ...new Map([...before.nodes, ...now.nodes].map((node) => [node.id, node])).values(),
  ];
  const gone = known.filter((node) => isGone(present.get(node.id)));
  if (gone.length > 0) throw machinesFailed(gone.map((node) => present.get(node.id) ?? node));
  if (now.state !== "incomplete") return;
  throw new ClusterError(
    "machine-failed",
    `Machines of cluster "${now.id}" are missing: only ${now.nodes.length} exist.`,
    {
      hint,
    },
  );
}

const isGone = (node: NodeRecord | undefined): boolean => node === undefined || !isUp(node);
const isUp = ({ state }: NodeRecord): boolean => state === "starting" || state === "running";
const canContinue = ({ state }: NodeRecord): boolean => state === "stopped" || state === "paused";

function machinesFailed(gone: readonly NodeRecord[]): ClusterError {
  const texts = gone.map((node) => {
    const state = canContinue(node) ? node.state : "gone";
    const why = node.stateReason ? `: ${outside(node.stateReason)}` : "";
    return `${nodeReference(node)} (${node.id}) is ${state}${why}`;
  });
  return new ClusterError("machine-failed", `Not all machines run: ${texts.join("; ")}.`, {
    hint: gone.every(canContinue) ? `${runCommand("start")}, then wait again.` : hint,
    facts: {
      nodes: gone.map((node) => ({
        node: nodeReference(node),
        id: node.id,
        reason: outside(node.stateReason ?? "") || undefined,
      })),
    },
  });
}
