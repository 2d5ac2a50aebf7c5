import { ClusterError } from "../../../errors.ts";
import { parseMoment } from "../../../model/parse-values.ts";
import { isAbandonedCreation } from "../../../system/files/creation-folder.ts";
import type { ClusterName } from "../../../model/backend.ts";
import type { Surroundings } from "../../../system/surroundings.ts";
import type { CloudApi } from "../api/api.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { removeCreation } from "./remove-creation.ts";
import { readLaunches, type SavedLaunch } from "../launch/saved-requests.ts";
import { readTags } from "../records/tags.ts";

const nothingSaved = { launches: [], unreadable: [] };

/**
 * Ends the cluster's machines, waits until they are gone, and removes their group. They are found by the creation's tag, not by the record,
 * whose machines may be forgotten by now; those of a creation that was cut short also by the requests in its folder, as
 * far as those can be read. Throws `cloud-failed` where
 * something is left.
 */
export async function removeCluster(
  api: CloudApi,
  { id: clusterId, creationId, directory }: ClusterName,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = surroundings;
  // Every machine of a creation that came to its end has been seen with its tag.
  const { launches, unreadable } = (await isAbandonedCreation(directory))
    ? await readLaunches(directory)
    : nothingSaved;
  if (unreadable.length > 0) surroundings.progress.detail(1, `${directory} holds launches that cannot be read.`);
  const live = launches.filter((launch) => (expiryOf(launch)?.getTime() ?? 0) > clock.now());
  const ended = await endLaunches(api, live, clock, signal);
  const remains = { clusterId, creationId, machineIds: ended, groupId: undefined };
  const left = await removeCreation(api, remains, surroundings, signal);
  const text = leftoversText(
    left,
    launches.map(expiryOf).find((expiry) => expiry !== undefined),
  );
  if (text !== undefined) throw new ClusterError("cloud-failed", text, { facts: { ...left } });
}

/** When its machines end by themselves; asked for again after that, it would launch new ones. */
function expiryOf({ request }: SavedLaunch): Date | undefined {
  return parseMoment(readTags(request.TagSpecifications?.[0]?.Tags).expiresAt);
}
