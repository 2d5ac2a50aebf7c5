import type { ClusterName } from "../../model/cluster-record.ts";
import { creationDirectory, isCreationHere, isFinishedCreation } from "../../store/creation-folder.ts";
import { readLaunches } from "./launch/saved-requests.ts";

/** What this computer itself knows of a creation. Unlike tags, nobody else in the account can change it. */
export interface OwnLaunches {
  /** The machines that its requests launched. */
  readonly machineIds: ReadonlySet<string>;
  /** The security groups that its requests named. */
  readonly groupIds: ReadonlySet<string>;
}

/** What this computer knows of creations, by creation id. */
export interface KnownHere {
  /** Creations whose key is here, including imported ones. */
  readonly creationIds: ReadonlySet<string>;
  readonly launches: ReadonlyMap<string, OwnLaunches>;
}

/** Reads what this computer knows of the creations that machines' tags name; `root` is the folder of the region's creations. */
export async function readKnownHere(
  tagged: readonly { readonly clusterId: string; readonly creationId: string }[],
  root: string,
): Promise<KnownHere> {
  const directories = new Map(
    tagged.map(({ clusterId, creationId }) => [creationDirectory(root, clusterId, creationId), creationId]),
  );
  const found = await Promise.all(
    [...directories].map(async ([directory, creationId]) => ({
      creationId,
      isHere: await isCreationHere(directory),
      launches: await readOwnLaunches({ directory }),
    })),
  );
  return {
    creationIds: new Set(found.filter(({ isHere }) => isHere).map(({ creationId }) => creationId)),
    launches: new Map(
      found.flatMap(({ creationId, launches }) => (launches === undefined ? [] : [[creationId, launches]])),
    ),
  };
}

/** Reads what a creation has launched from its folder. Undefined if that isn't known here, or not completely yet. */
export async function readOwnLaunches({ directory }: Pick<ClusterName, "directory">): Promise<OwnLaunches | undefined> {
  if (!(await isFinishedCreation(directory))) return undefined;
  const { launches, unreadable } = await readLaunches(directory);
  const isComplete = unreadable.length === 0 && launches.every(({ machineIds }) => machineIds !== undefined);
  const machineIds = launches.flatMap((launch) => launch.machineIds ?? []);
  if (!isComplete || machineIds.length === 0) return undefined;
  const groupIds = launches.flatMap(({ request }) => request.NetworkInterfaces?.[0]?.Groups ?? []);
  return { machineIds: new Set(machineIds), groupIds: new Set(groupIds) };
}
