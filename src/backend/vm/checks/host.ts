import { readdir, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Check, localLimitMs, type Outcome, pass, skip, warn } from "../../../model/check.ts";
import type { Environment } from "../../../system/runtime.ts";
import { imageFolder } from "../images/image-store.ts";
import { defaults } from "../options.ts";

/** A create without options creates a master, an agent and a public agent. */
const usualNodes = 3;
const usualMemoryBytes = usualNodes * defaults.memoryMegabytes * 1024 ** 2;
/** An image, plus what three nodes with a platform write to their disks. */
const usualDiskBytes = 10e9;

export function memoryCheck({
  totalBytes,
  freeBytes,
}: {
  readonly totalBytes: number;
  readonly freeBytes: number;
}): Check {
  const run = async (): Promise<Outcome> => {
    const text = `${gigabytes(freeBytes)} of ${gigabytes(totalBytes)} GB are free`;
    if (freeBytes >= usualMemoryBytes) return Promise.resolve(pass(text));
    return Promise.resolve(
      warn(
        `${text}, but ${usualNodes} nodes of ${defaults.memoryMegabytes} MB may use ${gigabytes(usualMemoryBytes)} GB.`,
        "Close other programs, use fewer nodes, or give them less memory with `memory`.",
      ),
    );
  };
  return { name: "memory", limitMs: localLimitMs, run };
}

/** `folder` is where the machines' disks will be; it need not exist yet. */
export function diskCheck(folder: string): Check {
  const run = async (): Promise<Outcome> => {
    const free = await freeSpace(folder);
    const text = `${gigabytes(free)} GB free at ${folder}`;
    if (free >= usualDiskBytes) return pass(text);
    return warn(
      `There are only ${text}, but a small cluster may need ${gigabytes(usualDiskBytes)} GB.`,
      "Free some space, or set XDG_STATE_HOME to another folder.",
    );
  };
  return { name: "disk", limitMs: localLimitMs, run };
}

/** Reports the images that are already downloaded. */
export function imageCheck(environment: Environment): Check {
  const folder = imageFolder(environment);
  const run = async (): Promise<Outcome> => {
    const names = await readdir(folder).catch(() => []);
    const images = names.filter((name) => name.endsWith(".img"));
    if (images.length === 0) return skip(`None in ${folder} yet: the first create downloads one.`);
    const sizes = await Promise.all(images.map(async (name) => (await stat(join(folder, name))).size));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    return pass(`${images.length} in ${folder}, ${gigabytes(total)} GB`, images.toSorted());
  };
  return { name: "image cache", limitMs: localLimitMs, run };
}

async function freeSpace(folder: string): Promise<number> {
  const space = await statfs(folder).catch(() => undefined);
  if (space !== undefined) return space.bavail * space.bsize;
  return folder === dirname(folder) ? 0 : await freeSpace(dirname(folder));
}

const gigabytes = (bytes: number): string => (Math.floor(bytes / 1e8) / 10).toFixed(1);
