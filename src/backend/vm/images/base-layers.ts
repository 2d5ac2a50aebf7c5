import { createHash } from "node:crypto";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { outside } from "../../../outside-text.ts";
import { cacheFolder } from "../../../store/state-folder.ts";
import { hashOfFile, readHash } from "../../../system/files/byte-source.ts";
import { isAccessible, makePrivateFolder } from "../../../system/files/private-file.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import type { Environment } from "../../../system/runtime.ts";
import type { MachineFiles } from "../machines/machine-process.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import {
  type Sum,
  identityIn,
  identityOf,
  parseSum,
  readVerification,
  recordVerification,
} from "./image-verification.ts";

/**
 * A file below the machines' disks, as it was when the machines got their disks. With any other
 * contents, these are worthless.
 */
export const parseBaseLayer = read.object({
  path: read.string,
  sum: parseSum,
  /** See `identityOf`. A file that nobody has touched since needs no reading. */
  identity: read.string,
});

export type BaseLayer = read.ValueOf<typeof parseBaseLayer>;

/**
 * Describes files on which disks are about to be layered. Reads each of them, unless an earlier
 * creation has read it.
 */
export async function describeLayers(
  paths: readonly string[],
  environment: Environment,
  signal: AbortSignal,
): Promise<readonly BaseLayer[]> {
  const layers: BaseLayer[] = [];
  for (const path of new Set(paths)) layers.push(await describeLayer(path, environment, signal));
  return layers;
}

async function describeLayer(
  path: string,
  environment: Environment,
  signal: AbortSignal,
): Promise<BaseLayer> {
  const identity = await identityOf(path);
  const records = join(cacheFolder(environment), "sums");
  const own = join(records, createHash("sha256").update(path).digest("hex"));
  const known = await Promise.all([path, own].map(async (each) => readVerification(each)));
  const found = known.find((each) => each?.identity === identity);
  if (found !== undefined) return { path, sum: found.sum, identity };
  const sum: Sum = { algorithm: "sha256", hex: await hashOfFile(path, "sha256", signal) };
  await makePrivateFolder(cacheFolder(environment));
  await makePrivateFolder(records);
  await recordVerification(own, { sum, identity });
  return { path, sum, identity };
}

const parseChain = read.list(read.object({ filename: read.string }));

/** Returns the paths of all files below a machine's own disk and flash memory. */
export async function layersBelow(
  qemu: Qemu,
  { disk, flash }: Pick<MachineFiles, "disk" | "flash">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const path of [disk, flash.program, flash.variables]) {
    if (!(await isAccessible(path))) continue;
    const end = await qemu.image(
      ["info", "--output=json", "--backing-chain", "-f", "qcow2", path],
      signal,
    );
    const chain = end.status === 0 ? parseChain(parseJson(end.stdout)) : undefined;
    if (chain === undefined) throw qemuFailure("qemu-img info", end);
    paths.push(...chain.slice(1).map(({ filename }) => filename));
  }
  return paths;
}

/**
 * Throws `image-not-found` if a file below the machines' disks has gone or has other contents: the
 * machines would start, and break at what is read from it. Does nothing for clusters of earlier
 * versions, which recorded no layers.
 */
export async function assertLayersUnchanged(
  { clusterId, base = [] }: LayeredCluster,
  signal: AbortSignal,
): Promise<void> {
  for (const layer of base) {
    const { path, sum, identity } = layer;
    const found = await identityOf(path).catch(() => undefined);
    if (found === identity) continue;
    if (found !== undefined && (await hasSum(path, sum, signal))) continue;
    throw changedLayer(clusterId, layer, found === undefined ? "is gone" : changed);
  }
}

/** The facts about a cluster that say what its disks are layered on. */
interface LayeredCluster {
  readonly clusterId: string;
  readonly base?: readonly BaseLayer[] | undefined;
}

const changed = "was replaced or changed";

const changedLayer = (
  clusterId: string,
  { path, sum }: Pick<BaseLayer, "path" | "sum">,
  what: string,
): ClusterError =>
  new ClusterError(
    "image-not-found",
    `${outside(path)}, which the disks of cluster "${clusterId}" are layered on, ${what} since the machines were created.`,
    {
      hint: `Nothing was stopped or started. Put the former file back (${sum.algorithm} checksum ${sum.hex}), or destroy the cluster and create it again.`,
      facts: { cluster: clusterId, image: path, expected: sum.hex },
    },
  );

/**
 * Reads a whole layer, and then asks what it is layered on itself. Throws `image-not-found` if it
 * isn't what the machines were created on, or somebody touches it meanwhile: what has its name by
 * then may be anybody's file.
 */
export async function readUnchanged<Below>(
  path: string,
  { clusterId, base = [] }: LayeredCluster,
  readBelow: () => Promise<Below>,
  signal: AbortSignal,
): Promise<{ readonly bytes: number; readonly sha256: string; readonly below: Below }> {
  const { hex: sha256, information } = await readHash(path, "sha256", signal);
  const identity = identityIn(information);
  const recorded = base.find((layer) => layer.path === path);
  const sum: Sum = recorded?.sum ?? { algorithm: "sha256", hex: sha256 };
  const isKnown =
    recorded === undefined ||
    recorded.identity === identity ||
    (sum.algorithm === "sha256" ? sum.hex === sha256 : await hasSum(path, sum, signal));
  const below = await readBelow();
  const isSame = (await identityOf(path).catch(() => undefined)) === identity;
  if (isKnown && isSame) return { bytes: Number(information.size), sha256, below };
  throw changedLayer(clusterId, { path, sum }, changed);
}

/** What can't be read as a file, such as a pipe in its place, has another sum. */
async function hasSum(
  path: string,
  { algorithm, hex }: Sum,
  signal: AbortSignal,
): Promise<boolean> {
  const actual = await hashOfFile(path, algorithm, signal).catch(() => signal.throwIfAborted());
  return actual === hex;
}
