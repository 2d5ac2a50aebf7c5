import { ClusterError } from "../../../errors.ts";
import { parseMoment } from "../../../model/parse-values.ts";
import { isAbandonedCreation } from "../../../system/files/creation-folder.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";
import type { Runtime } from "../../../system/runtime.ts";
import type { CloudApi } from "../api/api.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText, removeCreation } from "./remove-creation.ts";
import { readLaunches, type SavedLaunch } from "../launch/saved-requests.ts";
import { readOwnLaunches } from "../records/own-launches.ts";
import { readTags } from "../records/tags.ts";

const nothingSaved = { launches: [], unreadable: [] };

/**
 * Terminates the cluster's machines, waits until they are gone, and removes their group. Finds them by the creation's tag and not by the record,
 * because the API may have forgotten the record's machines by now; on the computer that created the cluster, also by their ids. For an interrupted creation, also uses the requests in its folder, as far as they
 * can be read. Throws `cloud-failed` if something is left.
 */
export async function removeCluster(
  api: CloudApi,
  { id: clusterId, creationId, directory }: ClusterName,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = runtime;
  // In a completed creation, every machine has been seen with its tag.
  const { launches, unreadable } = (await isAbandonedCreation(directory))
    ? await readLaunches(directory)
    : nothingSaved;
  if (unreadable.length > 0) runtime.progress.detail(1, `Cannot read the launch records in ${directory}.`);
  const live = launches.filter((launch) => (expiryOf(launch)?.getTime() ?? 0) > clock.now());
  const ended = await endLaunches(api, live, clock, signal);
  const ownIds = [...((await readOwnLaunches({ directory }))?.machineIds ?? [])];
  const remains = { clusterId, creationId, machineIds: ended, groupId: undefined, ownIds };
  const left = await removeCreation(api, remains, runtime, signal);
  const text = leftoversText(
    left,
    launches.map(expiryOf).find((expiry) => expiry !== undefined),
  );
  if (text !== undefined) throw new ClusterError("cloud-failed", text, { facts: { ...left } });
}

/** When its machines end by themselves. After that, sending the request again would launch new ones. */
function expiryOf({ request }: SavedLaunch): Date | undefined {
  return parseMoment(readTags(request.TagSpecifications?.[0]?.Tags).expiresAt);
}
