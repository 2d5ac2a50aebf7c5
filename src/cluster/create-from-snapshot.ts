import { ClusterError } from "../errors.ts";
import type { Backend } from "../model/backend.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import type { Creation, CreationSummary } from "../model/creation.ts";
import { parseSnapshotName } from "../model/snapshots.ts";
import type { Runtime } from "../system/runtime.ts";
import { clusterIdProblem } from "./cluster-id.ts";
import { type ClusterCreation, createCluster } from "./create-cluster.ts";
import type { CreationRules } from "./create-installed-cluster.ts";
import { findCluster } from "./find-cluster.ts";
import type { SnapshotName } from "./snapshots.ts";

/** A cluster that continues from another one's snapshot. */
export interface SnapshotCopy {
  readonly clusterId: string;
  readonly from: SnapshotName;
}

/** Creates a cluster from a snapshot; see createCluster. Nothing is installed, because the machines continue where they were saved. */
export async function createFromSnapshot(
  backend: Backend<never>,
  { from, ...rules }: SnapshotCopy & CreationRules & Partial<Pick<ClusterCreation, "installer">>,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { clusterId } = rules;
  const plan = async (inner: AbortSignal): Promise<Creation> => planCopy(backend, { clusterId, from }, inner);
  const installer = () => ({ prepare: async () => {}, start: async () => {}, [Symbol.asyncDispose]: async () => {} });
  return createCluster(backend, { installer, ...rules, plan }, runtime, signal);
}

/** Describes what would be created, without creating anything. */
export async function summarizeCopy(
  backend: Backend<never>,
  copy: SnapshotCopy,
  signal: AbortSignal,
): Promise<CreationSummary> {
  return (await planCopy(backend, copy, signal)).summary;
}

async function planCopy(
  backend: Backend<never>,
  { clusterId, from }: SnapshotCopy,
  signal: AbortSignal,
): Promise<Creation> {
  if (backend.planCopy === undefined) {
    throw new ClusterError("bad-usage", `Clusters of this kind (${backend.name}) cannot be created from a snapshot.`, {
      hint: "Restore the snapshot in its own cluster.",
    });
  }
  const source = await findCluster(backend, from.clusterId, signal);
  return backend.planCopy({ clusterId, source, snapshot: from.name }, signal);
}

/** Reads `CLUSTER:NAME`; returns what is wrong with it as one sentence if it is something else. */
export function parseSnapshotReference(given: string): SnapshotName | { readonly problem: string } {
  const [clusterId = "", ...rest] = given.split(":");
  const name = parseSnapshotName(rest.join(":"));
  if (name !== undefined && clusterIdProblem(clusterId) === undefined) return { clusterId, name };
  return { problem: `"${given}" is not a cluster id and a snapshot's name, such as default:installed` };
}
