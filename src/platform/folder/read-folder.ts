import type { Checked } from "../../system/checked.ts";
import type { PlatformFacts } from "./platform-file.ts";

export interface PlatformFolder {
  readonly facts: PlatformFacts;
  /** Sorted by path. */
  readonly files: readonly PlatformFolderFile[];
}

export interface PlatformFolderFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** 0o644, or 0o755 for a file with a run bit. */
  readonly mode: number;
  readonly sizeBytes: number;
  readonly source: { readonly file: string } | { readonly text: string };
}

/** Reads and checks a folder on disk: every problem at once. `folder` is absolute. */
export async function readPlatformFolder(folder: string, signal: AbortSignal): Promise<Checked<PlatformFolder>> {
  signal.throwIfAborted();
  throw new Error(`not yet: ${folder}`);
}

/** A folder in memory, such as an embedded example. `shown` is its name in problems. */
export async function platformFolderOf(
  shown: string,
  files: readonly { readonly path: string; readonly mode: number; readonly text: string }[],
): Promise<Checked<PlatformFolder>> {
  throw new Error(`not yet: ${shown} ${files.length}`);
}
