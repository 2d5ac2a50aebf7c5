import type { ClusterRecord } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import { endCreation } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import type { Engine } from "./engine.ts";
import { removeCreation } from "./remove-creation.ts";

/** Removes the cluster's containers and its network. Throws `engine-failed` where something is left. */
export async function destroy(
  engine: Engine,
  cluster: ClusterRecord,
  { clock }: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const name = { clusterId: cluster.id, creationId: cluster.creationId };
  const left = await removeCreation(engine, name, clock, signal);
  if (left !== undefined) throw new ClusterError("engine-failed", left, { hint: "Try again.", facts: { ...name } });
  await endCreation(cluster.directory, "removed");
}
