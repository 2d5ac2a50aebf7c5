import { ClusterError, messageOf } from "../../../errors.ts";
import { outsideLine } from "../../../system/printable.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { parseJson } from "../../../system/parse-json.ts";

/** An image that a disk can be layered on. */
export interface LayeredImage {
  readonly path: string;
  readonly format: "qcow2" | "raw";
}

export interface ImageFacts extends LayeredImage {
  readonly sizeBytes: number;
}

/** Reads the facts about an image file. Throws `image-not-found` if nodes can't be created from it. */
export async function readImageFacts(qemu: Qemu, path: string, signal: AbortSignal): Promise<ImageFacts> {
  const end = await qemu.image(["info", "--output=json", path], signal);
  if (end.status !== 0) throw noImage(path, messageOf(qemuFailure("qemu-img info", end)));
  const told: unknown = parseJson(end.stdout);
  const { format, "virtual-size": sizeBytes } = isMapping(told) ? told : {};
  if (format !== "qcow2" && format !== "raw") throw noImage(path, `its format is ${outsideLine(format)}`);
  if (typeof sizeBytes !== "number") throw noImage(path, "its size is not known");
  if (isMapping(told) && leadsElsewhere(told))
    throw noImage(path, "it refers to another file, which could be any file on this machine");
  return { path, format, sizeBytes };
}

/**
 * Whether an image names a backing file or a data file. QEMU would open that file as this user, and the nodes could
 * read it.
 */
function leadsElsewhere(told: Readonly<Record<string, unknown>>): boolean {
  const specific = told["format-specific"];
  const data = isMapping(specific) ? specific["data"] : undefined;
  return "backing-filename" in told || (isMapping(data) && "data-file" in data);
}

/**
 * Creates a machine's own disk. Reads what isn't written yet from the image; beyond the image's end, the disk is empty.
 */
export async function createDisk(
  qemu: Qemu,
  disk: { readonly path: string; readonly image: LayeredImage; readonly megabytes: number },
  signal: AbortSignal,
): Promise<void> {
  const { path, image, megabytes } = disk;
  const words = ["create", "-q", "-f", "qcow2", "-b", image.path, "-F", image.format, path, `${megabytes}M`];
  const end = await qemu.image(words, signal);
  if (end.status !== 0) throw qemuFailure("qemu-img create", end);
}

/** A disk smaller than the image would cut the image off. */
export function assertDiskIsLargeEnough({ path, sizeBytes }: ImageFacts, megabytes: number): void {
  const needed = Math.ceil(sizeBytes / 1024 ** 2);
  if (megabytes >= needed) return;
  throw new ClusterError("bad-usage", `The image ${path} is a disk of ${needed} MB, but \`diskSize\` is smaller.`, {
    hint: `Pass \`diskSize ${Math.ceil(needed / 1024)}g\` or more.`,
    facts: { image: path, neededMegabytes: needed },
  });
}

const noImage = (path: string, reason: string): ClusterError =>
  new ClusterError("image-not-found", `${path} is not a disk image that nodes can use: ${reason}.`, {
    hint: "It must be the disk of a system with cloud-init, in qcow2 or raw format.",
    facts: { image: path },
  });
