import { parseMoment, toRemark } from "../../model/parse-values.ts";
import type { AbandonedCreation } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { type Leftovers, removeCreation } from "./remove-creation.ts";
import { readLaunches, type SavedLaunch } from "./saved-requests.ts";
import { readTags } from "./tags.ts";

/** Removes what one create that was killed on this machine has left in the cloud. Resolves with what could not be removed. */
export async function removeOneAbandoned(
  api: CloudApi,
  { directory, creation }: AbandonedCreation,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<string | undefined> {
  const saved = await readLaunches(directory);
  const launches = saved.launches.filter((launch) => !hasExpired(launch, surroundings.clock.now()));
  const { ended, unknown } = await endLaunches(api, launches, surroundings.clock, signal);
  const { clusterId, creationId } = creation;
  const remains = { clusterId, creationId, machineIds: ended, groupId: undefined };
  const left: Leftovers = await removeCreation(api, remains, surroundings, signal);
  return leftoversText({ ...left, unknownLaunches: [...unknown, ...saved.unreadable.map(toFileName)] });
}

/** Such a file's name may be anything. */
const toFileName = (name: string): string => toRemark(name) ?? "a launch without a name";

/** Its machines have ended by themselves; asking for them again would launch new ones. */
function hasExpired({ request }: SavedLaunch, nowMs: number): boolean {
  const expiresAt = parseMoment(readTags(request.TagSpecifications?.[0]?.Tags).expiresAt);
  return expiresAt === undefined || expiresAt.getTime() < nowMs;
}
