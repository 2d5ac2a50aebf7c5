import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunInstancesCommandInput } from "@aws-sdk/client-ec2";
import { parseMoment } from "../../../model/parse-values.ts";
import {
  creationOfDirectory,
  creationDirectory,
  isCreationHere,
  isFinishedCreation,
} from "../../../store/creation-folder.ts";
import * as read from "../../../model/reader.ts";
import { writePrivateFile } from "../../../system/files/private-file.ts";
import { parseInstanceId, readTags } from "../tags.ts";
import { readOwnJson } from "../../../system/files/read-text.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";

/**
 * A launch as it was requested, and what is known about its outcome. Keeps the whole request, not only its token,
 * because a retry must be identical. If `machineIds` is `undefined`, the answer is unknown, and the machines may or may
 * not have been launched.
 */
export interface SavedLaunch {
  readonly name: string;
  readonly request: RunInstancesCommandInput;
  readonly machineIds: readonly string[] | undefined;
}

/**
 * Saves the launch durably in the creation's folder before the request is sent, and again when its
 * outcome is known.
 */
export async function saveLaunch(directory: string, launch: SavedLaunch): Promise<void> {
  const folder = folderOf(directory);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writePrivateFile(
    join(folder, `${launch.name}.json`),
    `${JSON.stringify({ schemaVersion: 1, ...launch })}\n`,
  );
}

export async function readLaunches(directory: string) {
  const folder = folderOf(directory);
  const names = (await readdir(folder).catch(() => []))
    .map((name) => /^(.+)\.json$/.exec(name)?.[1])
    .filter((name) => name !== undefined);
  const launches = await Promise.all(
    names.map(async (name) =>
      readOwnJson(join(folder, `${name}.json`), (found) => parseLaunch(found, { name, directory })),
    ),
  );
  return {
    launches: launches.filter((launch) => launch !== undefined),
    /** Names of files whose launches can't be known any more: damaged, from another version, or of another creation. */
    unreadable: names.filter((_, index) => launches[index] === undefined),
  };
}

/**
 * Parses a launch from its file; returns `undefined` for any other shape. The request is sent again as it is, so it
 * must be a launch request whose tags belong to the creation that owns this folder.
 */
export function parseLaunch(
  found: unknown,
  { name, directory }: { readonly name: string; readonly directory: string },
): SavedLaunch | undefined {
  const launch = readLaunch(found);
  const tags = readTags(launch?.request.TagSpecifications?.[0]?.Tags);
  const owner = creationOfDirectory(directory);
  if (
    owner === undefined ||
    tags.clusterId !== owner.clusterId ||
    tags.creationId !== owner.creationId
  )
    return undefined;
  if (parseMoment(tags.expiresAt) === undefined || launch?.name !== name) return undefined;
  const { request, machineIds } = launch;
  return { name, request, machineIds };
}

/** The request stays whole. Checks only what our own code reads; the API judges the rest. */
const readRequest: read.Reader<RunInstancesCommandInput> = (found) =>
  readOwnFields(found) === undefined ? undefined : (found as RunInstancesCommandInput);

const readTagSpecification = read.object({
  Tags: read.list(read.object({ Key: read.string, Value: read.string })),
});

const readOwnFields = read.object({
  ClientToken: read.matching(/^[0-9a-f-]{36}$/),
  ImageId: read.matching(/^ami-[0-9a-f]{8,17}$/),
  MinCount: read.integer,
  MaxCount: read.integer,
  TagSpecifications: read.refined(read.list(read.anything), ([first]) =>
    readTagSpecification(first),
  ),
});

const readLaunch = read.object({
  schemaVersion: read.oneOf(1),
  name: read.matching(/^[a-z_]+-[0-9]{1,3}$/),
  request: readRequest,
  machineIds: read.optional(read.list(parseInstanceId)),
});

function folderOf(directory: string): string {
  return join(directory, "launches");
}

/** This computer's own record of a creation's launches. Unlike tags, nobody else in the account can change it. */
export interface OwnLaunches {
  readonly machineIds: ReadonlySet<string>;
  readonly groupIds: ReadonlySet<string>;
}

/** This computer's own records of creations. `launches` is keyed by creation id. */
export interface KnownHere {
  /** Creations whose key is here, including imported ones. */
  readonly creationIds: ReadonlySet<string>;
  readonly launches: ReadonlyMap<string, OwnLaunches>;
}

/**
 * Reads this computer's records of the creations that machines' tags name. `root` is the folder of
 * the region's creations.
 */
export async function readKnownHere(
  tagged: readonly { readonly clusterId: string; readonly creationId: string }[],
  root: string,
): Promise<KnownHere> {
  const directories = new Map(
    tagged.map(({ clusterId, creationId }) => [
      creationDirectory(root, clusterId, creationId),
      creationId,
    ]),
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
      found.flatMap(({ creationId, launches }) =>
        launches === undefined ? [] : [[creationId, launches]],
      ),
    ),
  };
}

/** Reads a creation's launches from its folder. Undefined if they aren't known here, or not completely yet. */
export async function readOwnLaunches({
  directory,
}: Pick<ClusterName, "directory">): Promise<OwnLaunches | undefined> {
  if (!(await isFinishedCreation(directory))) return undefined;
  const { launches, unreadable } = await readLaunches(directory);
  const isComplete =
    unreadable.length === 0 && launches.every(({ machineIds }) => machineIds !== undefined);
  const machineIds = launches.flatMap((launch) => launch.machineIds ?? []);
  if (!isComplete || machineIds.length === 0) return undefined;
  const groupIds = launches.flatMap(({ request }) => request.NetworkInterfaces?.[0]?.Groups ?? []);
  return { machineIds: new Set(machineIds), groupIds: new Set(groupIds) };
}
