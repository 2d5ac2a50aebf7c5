import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { cacheFolder } from "../../../store/state-folder.ts";
import * as read from "../../../model/reader.ts";
import { makePrivateFolder, writePrivateFile } from "../../../system/files/private-file.ts";
import { readOwnJson } from "../../../system/files/read-text.ts";
import { readBootId } from "../../../system/processes/process-identity.ts";
import type { Environment } from "../../../system/runtime.ts";
import { accelerators } from "../options.ts";

const parseBroken = read.object({
  accelerator: read.oneOf(...accelerators),
  reason: read.string,
  bootId: read.string,
});

/** An accelerator that passed its trial but still stopped a machine, and QEMU's reason. */
export type BrokenAccelerator = Omit<read.ValueOf<typeof parseBroken>, "bootId">;

const longestReason = 500;

/** Returns where it is remembered; if this file is removed, the accelerator is used again. */
export const brokenAcceleratorPath = (environment: Environment): string =>
  join(cacheFolder(environment), "broken-accelerator.json");

/**
 * Remembers it until this computer restarts, perhaps with another kernel. If the system has no boot
 * id, remembers nothing.
 */
export async function rememberBrokenAccelerator(
  environment: Environment,
  broken: BrokenAccelerator,
): Promise<void> {
  const bootId = await readBootId();
  if (bootId === undefined) return;
  const path = brokenAcceleratorPath(environment);
  await makePrivateFolder(dirname(path));
  await writePrivateFile(path, `${JSON.stringify({ ...broken, bootId })}\n`);
}

export async function forgetBrokenAccelerator(environment: Environment): Promise<void> {
  await rm(brokenAcceleratorPath(environment), { force: true });
}

/** Returns `undefined` if no accelerator broke since this computer started. */
export async function readBrokenAccelerator(
  environment: Environment,
): Promise<BrokenAccelerator | undefined> {
  const stored = await readOwnJson(brokenAcceleratorPath(environment), parseBroken);
  if (stored === undefined || stored.bootId !== (await readBootId())) return undefined;
  const { accelerator, reason } = stored;
  return { accelerator, reason: reason.replaceAll(/\p{Cc}/gu, " ").slice(0, longestReason) };
}
