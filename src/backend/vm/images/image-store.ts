import { constants } from "node:fs";
import { chmod, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { cacheFolder } from "../../../store/state-folder.ts";
import * as read from "../../../model/reader.ts";
import { hashOfFile } from "../../../system/files/byte-source.ts";
import { isAccessible, makePrivateFolder } from "../../../system/files/private-file.ts";
import { readBody, parseJson, unreadableReason } from "../../../system/files/read-text.ts";
import { RefusedAnswer, mostBytes, requestFile } from "../../../system/network.ts";
import { networkFailure } from "../../../system/network-failure.ts";
import { maskUrl } from "../../../system/mask-url.ts";
import { outsideLine, withoutFullStop } from "../../../system/printable.ts";
import type { Environment, Work } from "../../../system/runtime.ts";
import { downloadToCache } from "../../shared/cached-download.ts";
import { type VmOptions, isUrl } from "../options.ts";
import type { Architecture } from "../qemu/architecture.ts";
import { type Qemu, isLocked, qemuFailure } from "../qemu/qemu.ts";
import {
  type Sum,
  findSum,
  identityOf,
  readVerification,
  recordVerification,
} from "./image-verification.ts";
import { type PublishedImage, publishedImage } from "./images.ts";

const listLimitMs = 30_000;
/** The longest published list has 100 kB. */
const mostListBytes = 4 * 1024 * 1024;

/**
 * Returns the folder where images are kept. Machines' disks are layers on top of them, so an
 * image's name identifies its contents, which never change.
 */
export const imageFolder = (environment: Environment): string =>
  join(cacheFolder(environment), "images");

/** The image that nodes are created from, and how to get it if it isn't on this machine. */
export interface MachineImage {
  readonly name: string;
  readonly path: string | undefined;
  readonly source?: ImageSource;
  /** Whether the file is in the store. Otherwise it is a user's own file. */
  readonly isStored?: boolean;
  readonly sum?: Sum;
}

interface ImageSource {
  readonly url: string;
  /** The beginning of the file's name in the store. */
  readonly prefix: string;
  readonly sums: { readonly listUrl: string } | Sum;
}

/** Only looks for the image; doesn't download it. Throws `image-not-found` if a user's own file doesn't exist. */
export async function findImage(
  { distribution, options }: { readonly distribution: string; readonly options: VmOptions },
  architecture: Architecture,
  environment: Environment,
): Promise<MachineImage> {
  const { image } = options;
  const folder = imageFolder(environment);
  if (image === undefined) {
    const prefix = `${distribution}-${architecture.name}`;
    return findPublished(prefix, publishedImage(distribution, architecture), folder);
  }
  const { source, sha256 } = image;
  const sum: Sum = { algorithm: "sha256", hex: (sha256 ?? "").toLowerCase() };
  if (!isUrl(source)) {
    if (!(await isAccessible(source, constants.R_OK))) throw noFile(source);
    return { name: source, path: source, ...(sha256 !== undefined && { sum }) };
  }
  const path = storedPath(folder, "own", sum);
  const name = maskUrl(source);
  if (await isAccessible(path)) return { name, path, isStored: true, sum };
  return { name, path: undefined, source: { url: source, prefix: "own", sums: sum } };
}

/** Uses a downloaded image if there is one: publishers change what "latest" means every few weeks. */
async function findPublished(
  prefix: string,
  { url, sumsUrl }: PublishedImage,
  folder: string,
): Promise<MachineImage> {
  const names = await readdir(folder).catch(() => []);
  const found = names.find((name) => name.startsWith(`${prefix}-`) && name.endsWith(".img"));
  return found === undefined
    ? { name: url, path: undefined, source: { url, prefix, sums: { listUrl: sumsUrl } } }
    : { name: found, path: join(folder, found), isStored: true };
}

/**
 * Downloads the image if it is missing and compares its sum with the publisher's, or verifies that
 * a stored image is still the one that was downloaded. Resolves with the file's path. Throws
 * `image-not-found` if the image isn't available or has another sum.
 */
export async function obtainImage(work: Work, image: MachineImage): Promise<string> {
  const { source, path = "", sum } = image;
  if (source !== undefined) return obtainFromWeb(work, source);
  if (image.isStored === true) await verifyStored(work, { path, sum });
  else if (sum !== undefined) await verifyOwn(work, path, sum);
  return path;
}

async function verifyOwn({ progress, signal }: Work, path: string, sum: Sum): Promise<void> {
  using step = progress.start("Verify the image", basename(path));
  const hint = `This is not the intended image, or ${optionName("imageSha256")} belongs to another one.`;
  await assertSum({ path, shown: path, hint }, sum, signal);
  step.done();
}

async function obtainFromWeb(work: Work, source: ImageSource): Promise<string> {
  const { environment, progress } = work;
  await closeStore(environment);
  using step = progress.start("Download the image", maskUrl(source.url));
  const sum =
    "listUrl" in source.sums
      ? await publishedSum(source, source.sums.listUrl, work.signal)
      : source.sums;
  const path = storedPath(imageFolder(environment), source.prefix, sum);
  const { url } = source;
  const hint =
    "This is not the intended image, or the download was corrupted. The downloaded file was deleted: try again.";
  await downloadToCache(
    work,
    {
      what: "image",
      url,
      shown: maskUrl(url),
      path,
      mostBytes: mostBytes.image,
      failure,
      isThere: async () => {
        if (!(await isAccessible(path))) return false;
        await verifyStored(work, { path, sum });
        return true;
      },
      assertSum: async (draft) =>
        assertSum({ path: draft, shown: maskUrl(url), hint }, sum, work.signal),
    },
    step,
    async () => recordVerification(path, { sum, identity: await identityOf(path) }),
  );
  step.done();
  return path;
}

/** Nobody else may write to the store, whatever the umask is or an earlier version left. */
export async function closeStore(environment: Environment): Promise<void> {
  await makePrivateFolder(cacheFolder(environment));
  await makePrivateFolder(imageFolder(environment));
}

/** Reading gigabytes takes seconds, so a file that hasn't changed since it was verified isn't read again. */
async function verifyStored(
  { environment, progress, signal }: Work,
  { path, sum }: { readonly path: string; readonly sum: Sum | undefined },
): Promise<void> {
  await closeStore(environment);
  // Even a chmod that changes nothing sets the time of the last change.
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
  const verified = await readVerification(path);
  const identity = await identityOf(path);
  const isKnown =
    verified?.identity === identity && (sum === undefined || sum.hex === verified.sum.hex);
  if (isKnown) return;
  using step = progress.start("Verify the stored image", basename(path));
  const expected = sum ?? verified?.sum ?? (await sumInName(path, signal));
  await assertSum({ path, shown: path, hint: changedHint }, expected, signal);
  await recordVerification(path, { sum: expected, identity });
  step.done();
}

/** Earlier versions recorded only the beginning of the sum, in the file's name. */
async function sumInName(path: string, signal: AbortSignal): Promise<Sum> {
  const beginning = basename(path, ".img").split("-").at(-1) ?? "";
  for (const algorithm of ["sha512", "sha256"] as const) {
    const hex = await hashOfFile(path, algorithm, signal);
    if (hex.startsWith(beginning)) return { algorithm, hex };
  }
  return { algorithm: "sha256", hex: `${beginning}…` };
}

const changedHint =
  "The file was changed or damaged after its download. Remove it, and the next create downloads it again. Don't trust the clusters that were created from it.";

async function publishedSum(
  { url }: ImageSource,
  listUrl: string,
  signal: AbortSignal,
): Promise<Sum> {
  const shown = maskUrl(listUrl);
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(listLimitMs)]);
  const unreadable = (error: unknown): never => {
    signal.throwIfAborted();
    throw new ClusterError(
      failure.id,
      `Cannot read the image's checksums from ${shown}: ${listFailure(error)}`,
      {
        hint: failure.hint,
        cause: error,
      },
    );
  };
  const response = await requestFile(listUrl, {}, bounded).catch(unreadable);
  const list = response.ok ? await readBody(response, mostListBytes).catch(unreadable) : "";
  const sum = findSum(list, basename(new URL(url).pathname));
  if (sum !== undefined) return sum;
  const reason = response.ok ? "it does not list the image" : `HTTP ${response.status}`;
  throw new ClusterError(failure.id, `Cannot get the image's checksum from ${shown}: ${reason}.`, {
    hint: failure.hint,
    facts: { url: shown },
  });
}

function listFailure(error: unknown): string {
  if (error instanceof RefusedAnswer) return error.message;
  const { reason, code } = networkFailure(error);
  return `${reason} (${code}).`;
}

/** `hint` is for an image with another sum. */
async function assertSum(
  { path, shown, hint }: { readonly path: string; readonly shown: string; readonly hint: string },
  sum: Sum,
  signal: AbortSignal,
): Promise<void> {
  const actual = await hashOfFile(path, sum.algorithm, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw noImage(shown, unreadableReason(error));
  });
  if (actual === sum.hex) return;
  throw new ClusterError(
    "image-not-found",
    `The image ${shown} has the ${sum.algorithm} checksum ${actual}, not ${sum.hex}.`,
    {
      hint,
      facts: { image: shown, expected: sum.hex, actual },
    },
  );
}

const failure = {
  id: "image-not-found",
  hint: `Check the network and the proxy variables (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), or download an image yourself and pass its path with ${optionName("image")}. The part that was received is kept, and the next attempt resumes it.`,
} as const;

const noFile = (path: string): ClusterError =>
  new ClusterError(
    "image-not-found",
    `The image ${path} does not exist, or this user may not read it.`,
    {
      hint: `Set ${optionName("image")} to the path of a qcow2 or raw disk image with cloud-init.`,
      facts: { image: path },
    },
  );

export const storedPath = (folder: string, prefix: string, { hex }: Sum): string =>
  join(folder, `${prefix}-${hex.slice(0, 16)}.img`);

/** An image that a disk can be layered on. */
export interface LayeredImage {
  readonly path: string;
  readonly format: "qcow2" | "raw";
}

export interface ImageFacts extends LayeredImage {
  readonly sizeBytes: number;
}

/** Reads the facts about an image file. Throws `image-not-found` if nodes can't be created from it. */
export async function readImageFacts(
  qemu: Qemu,
  path: string,
  signal: AbortSignal,
): Promise<ImageFacts> {
  const end = await qemu.image(["info", "--output=json", path], signal);
  if (end.status !== 0 && isLocked(end)) throw inUse(path);
  if (end.status !== 0)
    throw noImage(path, withoutFullStop(messageOf(qemuFailure("qemu-img info", end))));
  const info = read.anyMapping(parseJson(end.stdout)) ?? {};
  const { format, "virtual-size": sizeBytes } = info;
  if (format !== "qcow2" && format !== "raw")
    throw noImage(path, `its format is ${outsideLine(format)}`);
  if (typeof sizeBytes !== "number") throw noImage(path, "its size is not known");
  if (info["encrypted"] === true) throw noImage(path, "it is encrypted");
  if (isMarkedCorrupt(info) === true)
    throw noImage(
      path,
      `it is marked as damaged, which "qemu-img check -r all ${path}" may repair`,
    );
  // QEMU would open that file as this user, and the nodes could read it.
  if ("backing-filename" in info || dataFileOf(info) !== undefined)
    throw noImage(path, "it refers to another file, which could be any file on this computer");
  return { path, format, sizeBytes };
}

const isMarkedCorrupt = read.field(
  "format-specific",
  read.field("data", read.field("corrupt", read.anything)),
);

const dataFileOf = read.field(
  "format-specific",
  read.field("data", read.field("data-file", read.anything)),
);

/**
 * Creates a machine's own disk. Reads what isn't written yet from the image; beyond the image's end, the disk is empty.
 */
export async function createDisk(
  qemu: Qemu,
  disk: { readonly path: string; readonly image: LayeredImage; readonly megabytes: number },
  signal: AbortSignal,
): Promise<void> {
  const { path, image, megabytes } = disk;
  const words = [
    "create",
    "-q",
    "-f",
    "qcow2",
    "-b",
    image.path,
    "-F",
    image.format,
    path,
    `${megabytes}M`,
  ];
  const end = await qemu.image(words, signal);
  if (end.status !== 0) throw qemuFailure("qemu-img create", end);
}

/** A disk smaller than the image would cut the image off. */
export function assertDiskIsLargeEnough({ path, sizeBytes }: ImageFacts, megabytes: number): void {
  const needed = Math.ceil(sizeBytes / 1024 ** 2);
  if (megabytes >= needed) return;
  throw new ClusterError(
    "bad-usage",
    `The image ${path} is a disk of ${needed} MB, but ${optionName("diskSize")} is smaller.`,
    {
      hint: `Pass ${optionName("diskSize", `${Math.ceil(needed / 1024)}g`)} or more.`,
      facts: { image: path, neededMegabytes: needed },
    },
  );
}

const inUse = (path: string): ClusterError =>
  new ClusterError(
    "image-not-found",
    `Nodes cannot be created from ${path}: another program, such as a virtual machine, writes to it.`,
    {
      hint: "Shut that down first, or pass a copy of the image that nothing writes to.",
      facts: { image: path },
    },
  );

const noImage = (path: string, reason: string): ClusterError =>
  new ClusterError(
    "image-not-found",
    `${path} is not a disk image that nodes can use: ${reason}.`,
    {
      hint: "It must be the disk of a system with cloud-init, in qcow2 or raw format and one file, as qemu-img convert writes it.",
      facts: { image: path },
    },
  );
