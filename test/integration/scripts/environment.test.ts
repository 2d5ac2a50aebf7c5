/** What scripts/test and scripts/demo have started is found and ended, wherever temporary folders are. */
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

const root = join(import.meta.dir, "..", "..", "..");

test.skipIf(process.platform !== "linux")(
  "what has a folder with any name in its environment is found, and ended with it",
  async () => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "a [z-a]*b");
    await mkdir(folder);
    const started = Bun.spawn(["sleep", "1000"], { env: { TMPDIR: `${folder}/tmp` } });
    const other = Bun.spawn(["sleep", "1000"], { env: { TMPDIR: `${scratch.path}/a z/tmp` } });
    try {
      const lines = `set -eu; root=$1; . "$root/scripts/environment.sh"; processes_of "$2"; end_all_of "$2"; umask`;
      const argv = ["sh", "-c", lines, "sh", root, folder];
      const child = Bun.spawn(argv, { stdio: ["ignore", "pipe", "pipe"] });
      expect(await new Response(child.stdout).text()).toBe(`${started.pid}\n0022\n`);
      expect(await new Response(child.stderr).text()).toBe("");
      await started.exited;
      expect(started.signalCode).toBe("SIGTERM");
      expect(other.exitCode).toBeNull();
    } finally {
      started.kill();
      other.kill();
    }
  },
);
