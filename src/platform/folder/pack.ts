import type { PlatformFolder } from "./read-folder.ts";

/** Writes the folder as one self-contained artifact. The same folder gives the same bytes. Overwrites a regular file. */
export async function writeArtifact(platform: PlatformFolder, file: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  throw new Error(`not yet: ${platform.facts.name} ${file}`);
}
