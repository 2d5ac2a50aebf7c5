import { stat } from "node:fs/promises";
import type { Checked } from "../../system/checked.ts";
import { problem } from "../../system/checked.ts";
import { listFiles } from "../../system/files/list-files.ts";

/** A file on this machine and its target path on a node. */
export interface FileToCopy {
  /** Absolute path. */
  readonly source: string;
  readonly target: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  readonly sizeBytes: number;
}

/** The contents of `--genconf-dir`. The targets are relative to the installer's `genconf` folder. */
export interface GenconfFolder {
  readonly files: readonly FileToCopy[];
  /** Whether the user's own `ip-detect` replaces the backend's. */
  readonly hasIpDetect: boolean;
  readonly hasPublicIpDetect: boolean;
}

/** Lists the folder with its subfolders. `folder` is absolute. */
export async function readGenconfFolder(folder: string, signal: AbortSignal): Promise<Checked<GenconfFolder>> {
  const information = await stat(folder).catch(() => undefined);
  if (information === undefined) return problem(`the folder ${folder} does not exist`);
  if (!information.isDirectory()) return problem(`${folder} is not a folder`);
  const listed = await listFiles(folder, { boundary: folder, isSkipped: () => false }, signal);
  if (listed.problems !== undefined) return listed;
  const targets = new Set(listed.value.map((file) => file.path));
  if (targets.has("config.yaml")) {
    return problem(`${folder}/config.yaml is not allowed: pass your configuration with \`extraConfig\``);
  }
  return {
    value: {
      files: listed.value.map(({ source, path, mode, sizeBytes }) => ({
        source,
        target: path,
        mode: scriptMode(path, mode),
        sizeBytes,
      })),
      hasIpDetect: targets.has("ip-detect"),
      hasPublicIpDetect: targets.has("ip-detect-public"),
    },
  };
}

/** genconf runs these two files, so they are executable whatever their mode is here. */
const scriptMode = (path: string, mode: number): number =>
  path === "ip-detect" || path === "ip-detect-public" ? mode | 0o555 : mode;
