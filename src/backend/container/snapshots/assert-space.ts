import { stat, statfs } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { outsideLine } from "../../../system/printable.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { type Engine, askJson } from "../engine/engine.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import { savedAtOnce } from "./saved-nodes.ts";
import listSparseFile from "./list-sparse.sh" with { type: "text" };
import measureFile from "./measure-space.sh" with { type: "text" };

/** Engines and nodes count the sizes of all files. */
const countLimitMs = 10 * 60_000;

/** Kilobytes that a node's part of a snapshot takes from a file system. */
interface Need {
  /** The size of the file system, by which nodes on the same one are recognized. */
  readonly disk: number;
  readonly free: number;
  readonly needed: number;
}

interface SpacePlan {
  readonly facts: Pick<EngineFacts, "rootFolder" | "location">;
  readonly environment: Environment;
}

/**
 * Throws `capacity-lacking` if the engine's disk has no room for a snapshot. Nodes need not be
 * paused for that. Engines write the holes of sparse files as zeros, so that a file takes all of
 * its size. Whatever cannot be measured counts as enough.
 */
export async function assertSnapshotSpace(
  engine: Engine,
  containers: readonly NodeContainer[],
  plan: SpacePlan,
  signal: AbortSignal,
): Promise<void> {
  const layers = await readLayerSizes(engine, containers, signal);
  const needs = await mapConcurrently(
    containers,
    savedAtOnce,
    async (node) => measure(engine, node, layers.get(node.id) ?? 0, signal),
    signal,
  );
  const drafts = await findDrafts(engine, [...layers.values()], plan);
  const { rootFolder, location } = plan.facts;
  // A folder of this name on this computer says nothing about an engine elsewhere.
  const isElsewhere = location === "elsewhere" || location === "virtual-machine";
  const space = isElsewhere ? undefined : await statfs(rootFolder).catch(() => undefined);
  // A node with a quota of its own sees less than there is.
  const least = space === undefined ? 0 : (space.bavail * space.bsize) / 1024;
  const disks = Map.groupBy(needs.flat(), ({ disk }) => disk);
  const main = needs.find(({ length }) => length > 0)?.[0]?.disk;
  for (const [disk, members] of disks) {
    const own = members.reduce((sum, each) => sum + each.needed, 0);
    const needed = own + (disk === main && drafts.folder === undefined ? drafts.kilobytes : 0);
    const free = Math.max(least, ...members.map((each) => each.free));
    if (needed > free)
      throw lacking(
        `The disk of ${engine.kind.title}`,
        { free, needed },
        await spaceHint(engine, containers, signal),
      );
  }
  await assertDraftSpace(drafts);
}

const lacking = (
  what: string,
  { free, needed }: Pick<Need, "free" | "needed">,
  hint: string,
): ClusterError =>
  new ClusterError(
    "capacity-lacking",
    `${what} has ${gigabytes(free)} GB of free space, but the snapshot requires ${gigabytes(needed)} GB.`,
    { hint },
  );

/** What the engine writes into temporary files before it has saved a node. */
interface Drafts {
  readonly kilobytes: number;
  /** Their folder if it is on another disk than the engine's own, as far as this computer can see; absent otherwise. */
  readonly folder?: string;
}

/** Podman writes each layer into two temporary files first (seen with 4.3). */
const draftsOfLayer = 2;

async function findDrafts(
  { kind }: Engine,
  layerBytes: readonly number[],
  { facts: { rootFolder, location }, environment }: SpacePlan,
): Promise<Drafts> {
  if (kind.litteredFolder === undefined) return { kilobytes: 0 };
  const largest = layerBytes.toSorted((one, other) => other - one).slice(0, savedAtOnce);
  const kilobytes = (draftsOfLayer * largest.reduce((sum, bytes) => sum + bytes, 0)) / 1024;
  if (location !== "here") return { kilobytes };
  const folder = variable(environment, "TMPDIR") ?? kind.litteredFolder;
  const [root, own] = await Promise.all(
    [rootFolder, folder].map(async (path) => stat(path).catch(() => undefined)),
  );
  const isApart = root !== undefined && own !== undefined && root.dev !== own.dev;
  return isApart ? { kilobytes, folder } : { kilobytes };
}

async function assertDraftSpace({ kilobytes, folder }: Drafts): Promise<void> {
  if (folder === undefined) return;
  const space = await statfs(folder).catch(() => undefined);
  const free = space === undefined ? Infinity : (space.bavail * space.bsize) / 1024;
  if (kilobytes > free)
    throw lacking(
      outsideLine(folder),
      { free, needed: kilobytes },
      "Free some space there, or set TMPDIR to a folder on a larger disk.",
    );
}

const gigabytes = (kilobytes: number): string => ((kilobytes * 1024) / 1e9).toFixed(1);

/** Bytes that each container has written over its image, with holes. */
async function readLayerSizes(
  engine: Engine,
  containers: readonly NodeContainer[],
  signal: AbortSignal,
) {
  const words = ["container", "inspect", "--size", ...containers.map(({ id }) => id)];
  const answer = await askJson(engine, { words, limitMs: countLimitMs }, signal);
  const described = Array.isArray(answer) ? (answer as readonly unknown[]) : [];
  return new Map(
    described.flatMap((each) => {
      const { Id: id, SizeRw: size } = (each ?? {}) as { Id?: unknown; SizeRw?: unknown };
      return typeof id === "string" && typeof size === "number" && size > 0
        ? [[id, size] as const]
        : [];
    }),
  );
}

async function measure(
  engine: Engine,
  { id, volumes }: NodeContainer,
  layerBytes: number,
  signal: AbortSignal,
): Promise<readonly Need[]> {
  const script = shellText(measureFile);
  const paths = volumes.map(({ path }) => path);
  const words = ["exec", "--user=0:0", id, "/bin/sh", "-ec", script, "sh", ...paths];
  const printed = await engine.ask({ words, limitMs: countLimitMs }, signal).catch(() => {
    signal.throwIfAborted();
    return "";
  });
  return readNeeds(printed, { layerBytes, volumes: paths.length });
}

/** Reads what `measure-space.sh` prints. Returns nothing for any other text. */
export function readNeeds(
  printed: string,
  { layerBytes, volumes }: { readonly layerBytes: number; readonly volumes: number },
): readonly Need[] {
  const lines = printed.split("\n").map((line) => line.trim());
  const disks = lines.slice(0, volumes + 1).map((line) => /^(\d{1,15}) (\d{1,15})$/.exec(line));
  if (disks.includes(null)) return [];
  return disks.map((found, place) => {
    const used = lines[volumes + place] ?? "";
    const needed = place === 0 ? layerBytes / 1024 : /^\d{1,15}$/.test(used) ? Number(used) : 0;
    return { disk: Number(found?.[1]), free: Number(found?.[2]), needed };
  });
}

async function spaceHint(
  engine: Engine,
  containers: readonly NodeContainer[],
  signal: AbortSignal,
): Promise<string> {
  const found = await mapConcurrently(
    containers,
    savedAtOnce,
    async (node) => findSparse(engine, node, signal),
    signal,
  );
  const [largest] = found.flat().toSorted((one, other) => other.bytes - one.bytes);
  const usual = "Free some space, or delete a snapshot.";
  if (largest === undefined) return usual;
  const { node, path, bytes } = largest;
  return `Sparse files take their whole size in a snapshot, such as ${outsideLine(path, 100)} of ${node} (${gigabytes(bytes / 1024)} GB): remove them. ${usual}`;
}

async function findSparse(engine: Engine, node: NodeContainer, signal: AbortSignal) {
  const words = ["exec", "--user=0:0", node.id, "/bin/sh", "-ec", shellText(listSparseFile)];
  const printed = await engine.ask({ words, limitMs: countLimitMs }, signal).catch(() => "");
  return printed.split("\n").flatMap((line) => {
    const [, size, path] = /^(\d{1,18}) \d+ (\/.*)$/.exec(line) ?? [];
    return path === undefined ? [] : [{ node: nodeReference(node), path, bytes: Number(size) }];
  });
}
