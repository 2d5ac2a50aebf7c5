import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";

/** Makes a folder in this one that has `ssh` and no other program, and returns its path, for a PATH. */
export async function onlySsh(folder: string): Promise<string> {
  const bin = join(folder, "only-ssh");
  await mkdir(bin, { recursive: true });
  await symlink(Bun.which("ssh") ?? "/usr/bin/ssh", join(bin, "ssh")).catch(() => {});
  return bin;
}
