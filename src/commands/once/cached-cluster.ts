import { constants, open } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { outside } from "../../outside-text.ts";
import { clusterFileStart } from "../../model/snapshot.ts";
import { sha256OfFile, sha256OfJson } from "../../system/files/byte-source.ts";
import type { FileFacts } from "../../system/files/listed-file.ts";
import { errorCode, isFile } from "../../system/files/private-file.ts";
import { unreadableReason } from "../../system/files/read-text.ts";
import { variable } from "../../system/variable.ts";
import { version } from "../../version.ts";
import { clusterTraits } from "../create/create-options.ts";
import type { OnceInput } from "./once-options.ts";

/** A file for a cluster on which the platform is installed. */
export interface CachedCluster {
  readonly path: string;
  /**
   * The name of the snapshot in the file. It depends on the platform and all options, so that a
   * file for another cluster has another name.
   */
  readonly snapshot: string;
  readonly exists: boolean;
}

/**
 * Returns undefined if the user wants no cache. Throws `bad-usage` if the file can't be used, and the system's error if
 * a file on the command line can't be read.
 */
export async function findCached(
  kind: BackendKind,
  input: OnceInput,
  { environment, signal }: Context,
): Promise<CachedCluster | undefined> {
  const { cache: path } = input;
  if (path === undefined) return undefined;
  const exists = await isCacheThere(path);
  const { shown: _, ...artifact } = input.artifact;
  const files = artifact.kind === "folder" ? artifact.platform.files : artifact;
  // If a checksum identifies the artifact, its location doesn't matter.
  const source = input.artifactSha256 === undefined ? files : undefined;
  const license = input.licenseKey ?? variable(environment, "CLUSTER_LICENSE_KEY_PATH");
  const given = input as Readonly<Record<string, unknown>>;
  const traits = clusterTraits(kind).filter(
    (name) => name !== "artifact" && name !== "workspaceDir",
  );
  const values = traits.map((name) => [name, given[name]]);
  const contents = await contentsOf([version, kind.name, source, license, values], signal);
  const sum = sha256OfJson(contents);
  return { path, snapshot: `${namePrefix}${sum.slice(0, sumCharacters)}`, exists };
}

const [namePrefix, sumCharacters] = ["cached-", 32];
const cacheName = new RegExp(`^${namePrefix}[0-9a-f]{${sumCharacters}}$`);

/**
 * Whether an earlier run saved its cluster to the file, which may be damaged by now, or of no use
 * to this run. Throws `bad-usage` if anything else is there, such as a cluster that the user has
 * saved, because saving would replace it.
 */
export async function isCacheThere(path: string): Promise<boolean> {
  const refuse = (reason: string, cause?: unknown): ClusterError =>
    new ClusterError("bad-usage", `Cannot write ${outside(path)}: ${reason}.`, {
      hint: `Pass another file as ${optionName("cache")}, or delete this one.`,
      facts: { file: path },
      cause,
    });
  try {
    if (cacheName.test((await snapshotIn(path)) ?? "")) return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw refuse(unreadableReason(error), error);
  }
  throw refuse("it exists already, and is not a cluster that was saved for later runs");
}

/** More than precedes the snapshot's name in a file. */
const startBytes = 4096;

/**
 * The name of the snapshot that a cluster's file says it holds. Reads only its beginning, so that
 * the rest may be damaged.
 */
async function snapshotIn(path: string): Promise<string | undefined> {
  const { format, frameMagic, frameHeadBytes } = clusterFileStart;
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(startBytes), 0, undefined, 0);
  const text = buffer.toString("latin1", frameHeadBytes, bytesRead);
  if (buffer.readUInt32LE() !== frameMagic || !text.startsWith(`{"format":"${format}"`))
    return undefined;
  return /"snapshot":"([^"]*)"/.exec(text)?.[1];
}

/**
 * Replaces files by checksums of their contents, because their location doesn't matter, nor what
 * only tells copies apart: the next job has another checkout.
 */
async function contentsOf(value: unknown, signal: AbortSignal): Promise<unknown> {
  if (typeof value === "string")
    return isAbsolute(value) && (await isFile(value)) ? sha256OfFile(value, signal) : value;
  if (typeof value !== "object" || value === null) return value;
  if (isListed(value)) {
    const { source, device: _, inode: _inode, modifiedMs: _modified, ...others } = value;
    return [await sha256OfFile(source, signal), others];
  }
  const entries: (readonly [string, unknown])[] = [];
  for (const [name, inner] of Object.entries(value))
    entries.push([name, await contentsOf(inner, signal)]);
  return entries;
}

const isListed = (value: object): value is FileFacts =>
  "source" in value && "inode" in value && "modifiedMs" in value;
