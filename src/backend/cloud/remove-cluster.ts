import { ClusterError } from "../../errors.ts";
import { isAbandonedCreation } from "../../system/creation-folder.ts";
import type { ClusterName } from "../../model/backend.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import type { CloudApi } from "./api.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { removeCreation } from "./remove-creation.ts";
import { readLaunches, type SavedLaunch } from "./saved-requests.ts";
import { tagNames } from "./tags.ts";

/**
 * Ends the cluster's machines, waits until they are gone, and removes their group. They are found by the creation's tag, not by the record,
 * whose machines may be forgotten by now; those of a creation that was cut short also by the requests in its folder. Throws `cloud-failed` where
 * something is left.
 */
export async function removeCluster(
  api: CloudApi,
  { creationId, directory }: ClusterName,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = surroundings;
  // Every machine of a creation that came to its end has been seen with its tag.
  const launches = (await isAbandonedCreation(directory)) ? await readLaunches(directory) : [];
  const live = launches.filter((launch) => (expiryOf(launch)?.getTime() ?? 0) > clock.now());
  const ended = await endLaunches(api, live, clock, signal);
  const remains = { creationId, machineIds: ended, groupId: undefined };
  const left = await removeCreation(api, remains, surroundings, signal);
  const text = leftoversText(
    left,
    launches.map(expiryOf).find((expiry) => expiry !== undefined),
  );
  if (text !== undefined) throw new ClusterError("cloud-failed", text, { facts: { ...left } });
}

/** When its machines end by themselves; asked for again after that, it would launch new ones. */
function expiryOf({ request }: SavedLaunch): Date | undefined {
  const tags = request.TagSpecifications?.[0]?.Tags ?? [];
  const expiresAt = Date.parse(tags.find((tag) => tag.Key === tagNames.expiresAt)?.Value ?? "");
  return Number.isNaN(expiresAt) ? undefined : new Date(expiresAt);
}
