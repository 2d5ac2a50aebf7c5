import { createHash } from "node:crypto";
import { isAbsolute } from "node:path";
import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { sha256OfFile } from "../../system/files/byte-source.ts";
import { isFile } from "../../system/files/private-file.ts";
import { version } from "../../version.ts";
import { clusterTraits } from "../create/create-options.ts";
import type { OnceInput } from "./once-options.ts";

/** A file for a cluster on which the platform is installed. */
export interface CachedCluster {
  readonly path: string;
  /** The name of the snapshot in the file, which no file has that was made for another cluster. */
  readonly snapshot: string;
  readonly exists: boolean;
}

/** Returns undefined if no file is wanted. Throws what the system says if a file on the command line can't be read. */
export async function findCached(
  kind: BackendKind,
  input: OnceInput,
  { environment, signal }: Context,
): Promise<CachedCluster | undefined> {
  const { cache: path } = input;
  if (path === undefined) return undefined;
  const { shown: _, ...artifact } = input.artifact;
  // Where a checksum says what the artifact is, it doesn't matter where it is.
  const source = input.artifactSha256 === undefined ? artifact : undefined;
  const license = input.licenseKey ?? environment["CLUSTER_LICENSE_KEY_PATH"];
  const given = input as Readonly<Record<string, unknown>>;
  const traits = clusterTraits(kind).filter((name) => name !== "artifact" && name !== "workspaceDir");
  const values = traits.map((name) => [name, given[name]]);
  const contents = await contentsOf([version, kind.name, source, license, values], signal);
  const sum = createHash("sha256").update(JSON.stringify(contents)).digest("hex");
  return { path, snapshot: `cached-${sum.slice(0, 32)}`, exists: await isFile(path) };
}

/** Replaces the absolute paths of files by checksums of their contents: it doesn't matter where files are. */
async function contentsOf(value: unknown, signal: AbortSignal): Promise<unknown> {
  if (typeof value === "string")
    return isAbsolute(value) && (await isFile(value)) ? sha256OfFile(value, signal) : value;
  if (typeof value !== "object" || value === null) return value;
  const entries: (readonly [string, unknown])[] = [];
  for (const [name, inner] of Object.entries(value)) entries.push([name, await contentsOf(inner, signal)]);
  return entries;
}
