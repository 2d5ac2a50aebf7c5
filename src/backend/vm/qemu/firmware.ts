import { isAccessible } from "../../../system/files/private-file.ts";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import type { Architecture } from "./architecture.ts";
import type { LayeredImage } from "../images/image-store.ts";
import type { MachineFiles } from "../machines/machine-process.ts";
import { type Qemu, qemuFailure } from "./qemu.ts";
import { readOwnText, parseJson } from "../../../system/files/read-text.ts";

/** The two halves of UEFI: its program, and the initial variables of a machine. */
export interface Firmware {
  readonly program: LayeredImage;
  readonly variables: LayeredImage;
}

/** QEMU accepts flash memory of exactly this size. */
const flashMegabytes = 64;
/** Where an administrator puts descriptions; the others are in QEMU's own folders. */
const administratorsFolder = "/etc/qemu";

/**
 * Finds the firmware for machines that have none built in; returns `undefined` for those that have.
 * Packages that install firmware describe it in a file that all users of QEMU look for (QEMU's
 * docs/interop/firmware.json). Throws `machine-not-set-up` if there is none.
 */
export async function findFirmware(qemu: Qemu, signal: AbortSignal): Promise<Firmware | undefined> {
  const { architecture } = qemu;
  if (architecture.firmware === "BIOS") return undefined;
  const { stdout } = await qemu.system(["-L", "help"], signal);
  const folders = [
    administratorsFolder,
    ...stdout.split("\n").filter((line) => line.startsWith("/")),
  ];
  for (const path of await descriptions(folders)) {
    const found = await readDescription(path, architecture);
    if (found !== undefined) return found;
  }
  throw new ClusterError(
    "machine-not-set-up",
    `There is no UEFI firmware for QEMU's ${architecture.name} machines.`,
    {
      hint: `Install it (Debian and Ubuntu: sudo apt-get install ${architecture.packages}; Fedora: edk2-aarch64; macOS: brew reinstall qemu).`,
      facts: { folders },
    },
  );
}

/**
 * Sorts the files by name, since names begin with a number for that. A file hides files of the same
 * name in later folders.
 */
async function descriptions(folders: readonly string[]): Promise<readonly string[]> {
  const paths = new Map<string, string>();
  for (const parent of folders) {
    const folder = join(parent, "firmware");
    for (const name of await readdir(folder).catch(() => [])) {
      if (name.endsWith(".json") && !paths.has(name)) paths.set(name, join(folder, name));
    }
  }
  return [...paths.keys()].toSorted().map((name) => paths.get(name) ?? "");
}

async function readDescription(
  path: string,
  architecture: Architecture,
): Promise<Firmware | undefined> {
  const text = await readOwnText(path).catch(() => "");
  const firmware = parseDescription(text, architecture);
  if (firmware === undefined) return undefined;
  const areThere = await Promise.all(
    [firmware.program, firmware.variables].map(async (image) => isAccessible(image.path)),
  );
  return areThere.every(Boolean) ? firmware : undefined;
}

/**
 * Returns `undefined` for firmware that doesn't fit our machines. Firmware with Secure Boot doesn't
 * fit, because not every image boots with it.
 */
export function parseDescription(
  text: string,
  { name, machine }: Architecture,
): Firmware | undefined {
  const { targets, features, mapping } = mappingOf(parseJson(text));
  const isOurs = (target: Readonly<Record<string, unknown>>): boolean =>
    target["architecture"] === name && listOf(target["machines"]).includes(`${machine}-*`);
  if (!listOf(targets).map(mappingOf).some(isOurs) || listOf(features).includes("secure-boot"))
    return undefined;
  const { device, executable, "nvram-template": template } = mappingOf(mapping);
  const [program, variables] = [imageOf(executable), imageOf(template)];
  return device !== "flash" || program === undefined || variables === undefined
    ? undefined
    : { program, variables };
}

function imageOf(value: unknown): LayeredImage | undefined {
  const { filename, format } = mappingOf(value);
  return typeof filename === "string" && (format === "raw" || format === "qcow2")
    ? { path: filename, format }
    : undefined;
}

const mappingOf = read.withDefault(read.anyMapping, {});
const listOf = read.withDefault(read.list(read.anything), []);

/**
 * Creates a machine's own flash memory. It is a copy, because an upgrade of this computer replaces
 * the firmware below machines that live on.
 */
export async function createFlash(
  qemu: Qemu,
  { program, variables }: Firmware,
  { flash }: Pick<MachineFiles, "flash">,
  signal: AbortSignal,
): Promise<void> {
  for (const [{ path, format }, copy] of [
    [program, flash.program],
    [variables, flash.variables],
  ] as const) {
    const steps = [
      ["convert", "-f", format, "-O", "qcow2", path, copy],
      ["resize", "-q", "-f", "qcow2", copy, `${flashMegabytes}M`],
    ];
    for (const words of steps) {
      const end = await qemu.image(words, signal);
      if (end.status !== 0) throw qemuFailure(`qemu-img ${words[0]}`, end);
    }
  }
}
