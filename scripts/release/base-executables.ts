/** Bun itself for each platform, as the package registry has it and bun.lock pins it. */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { output } from "./command.ts";
import type { Platform } from "./platforms.ts";

/**
 * Path of the platform's Bun, below `folder`. `bun build --target` would download it too, but compares it with nothing; the
 * installer refuses what has not the checksum of bun.lock.
 */
export async function baseExecutable(
  { os, cpu, libc, basePackage }: Platform,
  root: string,
  folder: string,
): Promise<string> {
  for (const file of ["package.json", "bun.lock", "bunfig.toml"])
    await copyFile(join(root, file), join(folder, file));
  const install = [
    process.execPath,
    "install",
    "--frozen-lockfile",
    "--production",
    "--ignore-scripts",
    "--silent",
  ];
  const platform = ["--os", os, "--cpu", cpu, ...(libc === undefined ? [] : ["--libc", libc])];
  await output([...install, ...platform], { cwd: folder });
  return join(folder, "node_modules", ...basePackage.split("/"), "bin", "bun");
}
