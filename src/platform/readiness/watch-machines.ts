import type { ClusterRecord, NodeRecord } from "../../model/cluster-record.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/clock.ts";

/** The backend's record of the cluster, refreshed from time to time. */
export interface MachineWatch {
  /**
   * Returns the latest record, or an older one while the backend has a transient failure. Fails as `machine-failed` if a machine has ended or is
   * ending.
   */
  current(mustBeFresh: boolean, signal: AbortSignal): Promise<ClusterRecord>;
}

export interface MachineWatchRequest {
  readonly cluster: ClusterRecord;
  readonly describe: (signal: AbortSignal) => Promise<ClusterRecord>;
  readonly clock: Clock;
}

const usualPauseMs = 15_000;
/** If a node doesn't answer, its end must be noticed soon. */
const shortPauseMs = 3000;

export function createMachineWatch({ cluster, describe, clock }: MachineWatchRequest): MachineWatch {
  const latest = { record: cluster, askedAtMs: clock.now() };
  return {
    current: async (mustBeFresh, signal) => {
      const age = clock.now() - latest.askedAtMs;
      if (age >= (mustBeFresh ? shortPauseMs : usualPauseMs)) {
        latest.record = await describe(signal).catch((error: unknown) => {
          if (error instanceof ClusterError && error.transient) return latest.record;
          throw error;
        });
        latest.askedAtMs = clock.now();
      }
      assertAlive(cluster, latest.record);
      return latest.record;
    },
  };
}

const hint = "The cluster can never become ready; create a new one.";

function assertAlive(before: ClusterRecord, now: ClusterRecord): void {
  const present = new Map(now.nodes.map((node) => [node.id, node]));
  const known = [...new Map([...before.nodes, ...now.nodes].map((node) => [node.id, node])).values()];
  const gone = known.filter((node) => isGone(present.get(node.id)));
  if (gone.length > 0) throw machinesFailed(gone.map((node) => present.get(node.id) ?? node));
  if (now.state !== "incomplete") return;
  throw new ClusterError("machine-failed", `Cluster "${now.id}" lacks machines: only ${now.nodes.length} are there.`, {
    hint,
  });
}

const isGone = (node: NodeRecord | undefined): boolean =>
  node === undefined || node.state === "ending" || node.state === "ended";

function machinesFailed(gone: readonly NodeRecord[]): ClusterError {
  const texts = gone.map(
    (node) => `${nodeReference(node)} (${node.id})${node.stateReason ? `: ${node.stateReason}` : ""}`,
  );
  return new ClusterError("machine-failed", `Machines have ended: ${texts.join(", ")}.`, {
    hint,
    facts: { nodes: gone.map((node) => ({ node: nodeReference(node), id: node.id, reason: node.stateReason })) },
  });
}
