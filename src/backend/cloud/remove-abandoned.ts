import type { AbandonedCreation } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { type Leftovers, removeCreation } from "./remove-creation.ts";
import { readLaunches, type SavedLaunch } from "./saved-requests.ts";
import { tagNames } from "./tags.ts";

/** Removes what one create that was killed on this machine has left in the cloud. Resolves with what could not be removed. */
export async function removeOneAbandoned(
  api: CloudApi,
  { directory, creation }: AbandonedCreation,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<string | undefined> {
  const launches = (await readLaunches(directory)).filter((launch) => !hasExpired(launch, surroundings.clock.now()));
  const { ended, unknown } = await endLaunches(api, launches, surroundings.clock, signal);
  const { creationId } = creation;
  const left: Leftovers = await removeCreation(
    api,
    { creationId, machineIds: ended, groupId: undefined },
    surroundings,
    signal,
  );
  return leftoversText({ ...left, unknownLaunches: unknown });
}

/** Its machines have ended by themselves; asking for them again would launch new ones. */
function hasExpired(launch: SavedLaunch, nowMs: number): boolean {
  const tags = launch.request.TagSpecifications?.[0]?.Tags ?? [];
  const expiresAt = Date.parse(tags.find((tag) => tag.Key === tagNames.expiresAt)?.Value ?? "");
  return Number.isNaN(expiresAt) || expiresAt < nowMs;
}
