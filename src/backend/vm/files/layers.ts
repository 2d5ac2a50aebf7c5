import { createHash } from "node:crypto";
import { open, readdir, rename, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { sha256OfFile } from "../../../system/files/byte-source.ts";
import { draftBeside } from "../../../system/files/draft.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import { writeSparse } from "../../../system/files/sparse.ts";
import { acquireProcessLock } from "../../../system/processes/process-identity.ts";
import type { Runtime } from "../../../system/runtime.ts";
import { unusableFile } from "../../shared/cluster-file.ts";
import { closeStore, storedPath } from "../images/image-store.ts";
import { identityOf, readVerification, recordVerification } from "../images/image-verification.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import type { LayerFacts } from "./file-facts.ts";

/** A layer and where it is on this computer. */
export interface Layer extends LayerFacts {
  readonly path: string;
  /** Stands for its contents and those of all layers below it, in hexadecimal. */
  readonly sum: string;
}

export interface LayerStore {
  readonly qemu: Qemu;
  readonly folder: string;
  readonly runtime: Runtime;
  /** The name of the cluster's file, for messages. */
  readonly shown: string;
}

export async function findImage(
  folder: string,
  layer: LayerFacts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".img"));
  const own = basename(pathIn(folder, layer.sha256));
  for (const name of names.toSorted((a, b) => Number(b === own) - Number(a === own))) {
    const path = join(folder, name);
    if (!(await isStored(path, { ...layer, sum: layer.sha256 }, signal))) continue;
    const head = layer.format === "raw" ? undefined : await readQcow2(path);
    if (head === undefined || (head.problem === undefined && !head.hasBacking)) return path;
  }
  return undefined;
}

const pathIn = (folder: string, hex: string): string =>
  storedPath(folder, "own", { algorithm: "sha256", hex });

/** A file may lay the same contents on anything, so those alone don't identify a layer above another one. */
const sumOf = ({ sha256 }: LayerFacts, below: Layer | undefined): string =>
  below === undefined
    ? sha256
    : createHash("sha256").update(`${sha256} on ${below.sum}`).digest("hex");

/** A layer above another one names that layer in its head, so its bytes are not those that it had in its file. */
async function isStored(
  path: string,
  { bytes, sha256, sum }: Pick<Layer, "bytes" | "sha256" | "sum">,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(await isAccessible(path))) return false;
  const [verified, identity] = await Promise.all([readVerification(path), identityOf(path)]);
  if (verified?.identity === identity && verified.sum.hex === sum) return true;
  return (
    sum === sha256 &&
    (await stat(path)).size === bytes &&
    (await sha256OfFile(path, signal)) === sha256
  );
}

/**
 * Keeps a layer among the images, under a name that stands for its contents and what is below.
 * Reads all of it, also if it is there already.
 */
export async function storeLayer(
  store: LayerStore,
  { layer: facts, below }: { readonly layer: LayerFacts; readonly below: Layer | undefined },
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<Layer> {
  const { folder, runtime } = store;
  await closeStore(runtime.environment);
  const sum = sumOf(facts, below);
  const path = pathIn(folder, sum);
  const layer = { ...facts, path, sum };
  const onWait = (advice: string): void =>
    runtime.progress.note(`Waiting for another process that unpacks the same image.${advice}`);
  await using _ = await acquireProcessLock(
    `${path}.lock`,
    { clock: runtime.clock, onWait },
    signal,
  );
  if (await isStored(path, layer, signal)) {
    for await (const _chunk of chunks) continue;
    return layer;
  }
  await using draft = await draftBeside(path);
  await writeSparse(draft.path, chunks);
  if (layer.format === "qcow2")
    await settleDisk(store, { path: draft.path, name: "its image", below }, signal);
  await rename(draft.path, path);
  await recordVerification(path, {
    sum: { algorithm: "sha256", hex: sum },
    identity: await identityOf(path),
  });
  return layer;
}

/**
 * Lays a disk from outside on its layer, whatever it names itself. Throws `snapshot-unusable` if
 * QEMU would open any other file.
 */
export async function settleDisk(
  { qemu, shown }: LayerStore,
  {
    path,
    name,
    below,
  }: { readonly path: string; readonly name: string; readonly below: Layer | undefined },
  signal: AbortSignal,
): Promise<void> {
  const head = await readQcow2(path);
  if (head.problem !== undefined) throw unusableFile(shown, `is damaged: ${name} ${head.problem}`);
  if (head.hasBacking && below === undefined)
    throw unusableFile(shown, `is damaged: ${name} is layered on a file that it does not contain`);
  if (below === undefined) return;
  // Unsafe means that it reads neither the old layer nor the new one.
  const words = ["rebase", "-u", "-f", "qcow2", "-b", below.path, "-F", below.format, path];
  const end = await qemu.image(words, signal);
  if (end.status !== 0)
    throw unusableFile(
      shown,
      `is damaged: ${name} is not a disk that QEMU can use`,
      qemuFailure("qemu-img rebase", end).message,
    );
}

/** The bytes of a header of version 3 that are looked at. */
const headBytes = 80;
const qcow2Magic = "QFI\u00fb";
/**
 * A disk that wasn't closed, compression by zstd, and subclusters. Not: corrupt, contents in
 * another file, and what later versions of QEMU add.
 */
const allowedFeatures = 0b1_1001n;

/** What the head of a disk in the qcow2 format says about other files. */
type Qcow2Facts =
  | { readonly hasBacking: boolean; readonly problem?: undefined }
  | { readonly problem: string };

/**
 * Reads the head of a disk from outside, before QEMU opens it: QEMU would open every file that it names
 * (https://www.qemu.org/docs/master/interop/qcow2.html).
 */
async function readQcow2(path: string): Promise<Qcow2Facts> {
  await using file = await open(path, "r");
  const head = Buffer.alloc(headBytes);
  const { bytesRead } = await file.read(head, 0, headBytes, 0);
  if (bytesRead < headBytes || head.toString("latin1", 0, 4) !== qcow2Magic)
    return { problem: "is not a qcow2 disk" };
  const formatVersion = head.readUInt32BE(4);
  if (formatVersion !== 2 && formatVersion !== 3)
    return { problem: "is of an unknown version of qcow2" };
  if (head.readUInt32BE(32) !== 0) return { problem: "is encrypted" };
  const features = formatVersion === 3 ? head.readBigUInt64BE(72) : 0n;
  if ((features & ~allowedFeatures) !== 0n)
    return { problem: "refers to another file, or needs what QEMU may not have" };
  return { hasBacking: head.readBigUInt64BE(8) !== 0n || head.readUInt32BE(16) !== 0 };
}
