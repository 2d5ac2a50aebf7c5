import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Writes a platform that installs nothing, and is ready at once. Returns its folder. */
export async function writeEmptyPlatform(parent: string): Promise<string> {
  const folder = join(parent, "nothing");
  await mkdir(folder);
  await writeFile(join(folder, "platform.yaml"), 'name: nothing\nversion: "1.0"\n');
  for (const name of ["install", "check"]) {
    await writeFile(join(folder, name), "#!/bin/sh\n");
    await chmod(join(folder, name), 0o755);
  }
  return folder;
}
