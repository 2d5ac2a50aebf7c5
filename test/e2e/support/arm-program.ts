/** A program as users have it on ARM, run here by QEMU's user mode. It starts this machine's own programs, such as QEMU. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { buildVersion, compile, programBuild } from "../../../scripts/build.ts";
import { baseExecutable } from "../../../scripts/release/base-executables.ts";
import { platforms } from "../../../scripts/release/platforms.ts";
import { repository } from "./executable.ts";

const libraries = "/usr/aarch64-linux-gnu";

/** What this machine lacks for it. */
export const armLack = (): string | undefined =>
  ["qemu-aarch64-static", "qemu-system-aarch64"].find((program) => Bun.which(program) === null) ??
  [join(libraries, "lib", "ld-linux-aarch64.so.1"), "/usr/share/AAVMF/AAVMF_CODE.fd"].find(
    (path) => !existsSync(path),
  );

/** Builds it in this folder, and resolves with the words that start it. */
export async function armProgram(name: string, folder: string): Promise<readonly string[]> {
  const work = join(folder, "arm");
  await mkdir(work);
  const platform = platforms.find((each) => each.name === "linux-arm64")!;
  const base = await baseExecutable(platform, repository, work);
  const outfile = join(work, name);
  await compile({
    source: join(repository, "src", "bin", `${name}.ts`),
    ...(await programBuild(name)),
    outfile,
    version: await buildVersion(),
    platform: { target: platform.target, base },
  });
  return ["unshare", "--mount", "sh", "-ec", emulated, outfile, libraries];
}

/** Emulated threads read different times from /proc at which their process started. Without a boot id, the program asks ps. */
const emulated = `mount -t tmpfs none /proc/sys/kernel/random
libraries=$1
shift
exec qemu-aarch64-static -L "$libraries" "$0" "$@"`;
