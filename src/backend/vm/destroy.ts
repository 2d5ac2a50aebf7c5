import type { ClusterRecord } from "../../model/cluster-record.ts";
import { endCreation } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import { removeCreation } from "./remove-creation.ts";

/** Ends the cluster's machines and removes their disks. Throws `engine-failed` where something is left. */
export async function destroy(cluster: ClusterRecord, { clock }: Surroundings, signal: AbortSignal): Promise<void> {
  await removeCreation(cluster.directory, clock, signal);
  await endCreation(cluster.directory, "removed");
}
