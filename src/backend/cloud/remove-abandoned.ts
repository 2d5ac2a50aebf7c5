import { rm } from "node:fs/promises";
import type { AbandonedCreation } from "../../system/creation-folder.ts";
import { abandonedCreations } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { type Leftovers, removeCreation } from "./remove-creation.ts";
import { readLaunches, type SavedLaunch } from "./saved-requests.ts";
import { tagNames } from "./tags.ts";

/** Removes what creates of this id that were killed on this machine have left in the cloud. */
export async function removeAbandoned(
  api: CloudApi,
  abandoned: { readonly root: string; readonly clusterId: string },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const creations = await abandonedCreations(abandoned.root, abandoned.clusterId);
  if (creations.length === 0) return;
  using step = surroundings.progress.start("Remove what a create that was cut short had left");
  await Promise.all(creations.map((creation) => removeOne(api, creation, surroundings, signal)));
  step.done();
}

async function removeOne(
  api: CloudApi,
  { directory, creation }: AbandonedCreation,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const launches = (await readLaunches(directory)).filter((launch) => !hasExpired(launch, surroundings.clock.now()));
  const { ended, unknown } = await endLaunches(api, launches, surroundings.clock, signal);
  const { creationId } = creation;
  const left: Leftovers = await removeCreation(
    api,
    { creationId, machineIds: ended, groupId: undefined },
    surroundings,
    signal,
  );
  const text = leftoversText({ ...left, unknownLaunches: unknown });
  // Its key opens nothing any more.
  if (text === undefined) await rm(directory, { recursive: true, force: true });
  else surroundings.progress.warn(text);
}

/** Its machines have ended by themselves; asking for them again would launch new ones. */
function hasExpired(launch: SavedLaunch, nowMs: number): boolean {
  const tags = launch.request.TagSpecifications?.[0]?.Tags ?? [];
  const expiresAt = Date.parse(tags.find((tag) => tag.Key === tagNames.expiresAt)?.Value ?? "");
  return Number.isNaN(expiresAt) || expiresAt < nowMs;
}
