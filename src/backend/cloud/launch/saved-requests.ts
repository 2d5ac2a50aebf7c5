import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunInstancesCommandInput } from "@aws-sdk/client-ec2";
import { parseMoment } from "../../../model/parse-values.ts";
import { creationOfDirectory } from "../../../store/creation-folder.ts";
import { isMapping } from "../../../system/checked.ts";
import { writePrivateFile } from "../../../system/files/private-file.ts";
import { isInstanceId } from "../instance-id.ts";
import { readTags } from "../tags.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { parseJson } from "../../../system/parse-json.ts";

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
 * Saves the launch durably in the creation's folder before the request is sent, and again when its outcome is known.
 */
export async function saveLaunch(directory: string, launch: SavedLaunch): Promise<void> {
  const folder = folderOf(directory);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writePrivateFile(join(folder, `${launch.name}.json`), `${JSON.stringify({ schemaVersion: 1, ...launch })}\n`);
}

interface SavedLaunches {
  readonly launches: readonly SavedLaunch[];
  /** Names of files whose launches can't be known any more: damaged, from another version, or of another creation. */
  readonly unreadable: readonly string[];
}

/** Reads what an interrupted creation had requested. */
export async function readLaunches(directory: string): Promise<SavedLaunches> {
  const folder = folderOf(directory);
  const names = (await namesIn(folder))
    .map((name) => /^(.+)\.json$/.exec(name)?.[1])
    .filter((name) => name !== undefined);
  const read = await Promise.all(
    names.map(async (name) => parseLaunch(await readJson(join(folder, `${name}.json`)), { name, directory })),
  );
  return {
    launches: read.filter((launch) => launch !== undefined),
    unreadable: names.filter((_, index) => read[index] === undefined),
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
  if (!/^[a-z_]+-[0-9]{1,3}$/.test(name) || !isMapping(found) || found["schemaVersion"] !== 1) return undefined;
  const { request, machineIds } = found;
  if (found["name"] !== name || !isMapping(request) || !isLaunchRequest(request)) return undefined;
  const tags = readTags(request.TagSpecifications?.[0]?.Tags);
  const owner = creationOfDirectory(directory);
  if (owner === undefined || tags.clusterId !== owner.clusterId || tags.creationId !== owner.creationId)
    return undefined;
  if (parseMoment(tags.expiresAt) === undefined) return undefined;
  if (machineIds === undefined) return { name, request, machineIds };
  if (!Array.isArray(machineIds) || !machineIds.every(isInstanceId)) return undefined;
  return { name, request, machineIds };
}

/** Checks only what our own code reads; the API judges the rest. */
function isLaunchRequest(
  request: Readonly<Record<string, unknown>>,
): request is SavedLaunch["request"] & typeof request {
  const { ClientToken, ImageId, MinCount, MaxCount, TagSpecifications } = request;
  const specification: unknown = Array.isArray(TagSpecifications) ? TagSpecifications[0] : undefined;
  const tags: unknown = isMapping(specification) ? specification["Tags"] : undefined;
  return (
    typeof ClientToken === "string" &&
    /^[0-9a-f-]{36}$/.test(ClientToken) &&
    typeof ImageId === "string" &&
    /^ami-[0-9a-f]{8,17}$/.test(ImageId) &&
    Number.isSafeInteger(MinCount) &&
    Number.isSafeInteger(MaxCount) &&
    Array.isArray(tags) &&
    tags.every((tag) => isMapping(tag) && typeof tag["Key"] === "string" && typeof tag["Value"] === "string")
  );
}

async function readJson(path: string): Promise<unknown> {
  try {
    return parseJson(await readOwnText(path));
  } catch {
    return undefined;
  }
}

function folderOf(directory: string): string {
  return join(directory, "launches");
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch {
    return [];
  }
}
