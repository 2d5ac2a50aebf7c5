/** Two small releases, and a prefix to install them in. */
import { expect } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { smallRelease } from "../../support/small-release.ts";

export const platform = `${process.platform}-${process.arch}`;
export const [older, newer] = ["2020.01.01.0", "2020.01.02.0"] as const;

/** A folder with two releases, a folder for replaced programs, and a prefix. */
export async function place(signer?: string, ofPlatform = platform) {
  const folder = await scratchFolder();
  const at = (...names: string[]): string => join(folder.path, ...names);
  for (const name of ["bin", "tmp"]) await mkdir(at(name));
  const options = { signer, platform: ofPlatform };
  await smallRelease(folder.path, older, { cloud: "", older: "" }, options);
  await smallRelease(folder.path, newer, { cloud: "", vm: "" }, options);
  const prefix = at("prefix");
  const sh = async (lines: string, environment: Readonly<Record<string, string>> = {}) => {
    const child = Bun.spawn(["sh", "-c", `exec 2>&1\n${lines}`], {
      cwd: folder.path,
      env: { PATH: `${at("bin")}:${process.env.PATH}`, TMPDIR: at("tmp"), ...environment },
      stdout: "pipe",
    });
    const output = await new Response(child.stdout).text();
    return { status: await child.exited, output };
  };
  const program = async (name: string, lines: string): Promise<void> =>
    writeFile(at("bin", name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  /** All files with their contents, and all folders and links. */
  const census = async (): Promise<string> => {
    expect(await readdir(at("tmp"))).toEqual([]);
    return (
      await sh("! cd prefix 2>/dev/null || { find . | sort; find . -type f | sort | xargs cat; }")
    ).output;
  };
  return { ...folder, at, prefix, sh, program, census };
}

export const installed = (tag: string): string => `sh ${tag}/install.sh --prefix prefix`;
