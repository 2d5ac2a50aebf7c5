import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

export const smallPlatform: Readonly<Record<string, string>> = {
  "platform.yaml": 'name: small\nversion: "1.0"\n',
  install: "#!/bin/sh\nexit 0\n",
  check: "#!/bin/sh\nexit 0\n",
};

/** Writes the folder of a platform: the smallest one, with other or further files. Texts that begin like a script are executable; undefined: no such file. */
export async function writePlatform(
  folder: string,
  changes: Readonly<Record<string, string | undefined>> = {},
): Promise<string> {
  for (const [path, text] of Object.entries({ ...smallPlatform, ...changes })) {
    if (text === undefined) continue;
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    await chmod(file, text.startsWith("#!") ? 0o755 : 0o644);
  }
  return folder;
}
