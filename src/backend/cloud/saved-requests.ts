import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunInstancesCommandInput } from "@aws-sdk/client-ec2";
import { writePrivateFile } from "../../system/private-file.ts";

/**
 * A launch as it was asked for, and what is known of its outcome. The whole request is kept, not its token alone: asking again must be
 * identical. `undefined` machines: perhaps launched, the answer is not known.
 */
export interface SavedLaunch {
  readonly name: string;
  readonly request: RunInstancesCommandInput;
  readonly machineIds: readonly string[] | undefined;
}

/** Puts the launch into the creation's folder, for good, before it is asked for; and again when its outcome is known. */
export async function saveLaunch(directory: string, launch: SavedLaunch): Promise<void> {
  const folder = folderOf(directory);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writePrivateFile(join(folder, `${launch.name}.json`), `${JSON.stringify({ schemaVersion: 1, ...launch })}\n`);
}

/** What a creation that was cut short had asked for. */
export async function readLaunches(directory: string): Promise<readonly SavedLaunch[]> {
  const folder = folderOf(directory);
  const names = (await namesIn(folder)).filter((name) => name.endsWith(".json"));
  return await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(folder, name), "utf8")) as SavedLaunch),
  );
}

function folderOf(directory: string): string {
  return join(directory, "launches");
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch {
    return [];
  }
}
