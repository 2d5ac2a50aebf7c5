import type { ClusterRecord } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import { endCreation } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import { leftoversText } from "./leftovers-text.ts";
import { removeCreation } from "./remove-creation.ts";

/**
 * Ends the cluster's machines, waits until they are gone, and removes their group. They are found by the creation's tag, not by the record,
 * whose machines may be forgotten by now. Throws `cloud-failed` where something is left.
 */
export async function destroy(
  api: CloudApi,
  cluster: ClusterRecord,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const remains = { creationId: cluster.creationId, machineIds: [], groupId: undefined };
  const left = await removeCreation(api, remains, surroundings, signal);
  const text = leftoversText({
    ...left,
    unknownLaunches: [],
    ...(cluster.expiresAt && { expiresAt: cluster.expiresAt }),
  });
  if (text !== undefined) throw new ClusterError("cloud-failed", text, { facts: { ...left } });
  await endCreation(cluster.directory, "removed");
}
