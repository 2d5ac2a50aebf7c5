/** What scripts/test and scripts/demo have started is found and ended, wherever temporary folders are. */
import { expect, test } from "bun:test";
import { chmod, mkdir } from "node:fs/promises";
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

const userLack =
  process.getuid?.() === 0 && Bun.which("setpriv") !== null ? undefined : "needs root and setpriv";

test.skipIf(userLack !== undefined)(
  `another user's folders among the temporary ones name no Podman and no cluster to end (${userLack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    await chmod(scratch.path, 0o711);
    const folder = join(scratch.path, "tmp");
    await mkdir(folder);
    await chmod(folder, 0o1777);
    const plant = `cd "$1"; umask 022
      for each in podman cluster-e2e/container/id-0123456789abcdef; do mkdir -p "$2/$each"; : >"$2/$each/storage.conf"; done`;
    const stranger = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    const plantAs = (as: readonly string[], name: string): void =>
      void Bun.spawnSync([...as, "sh", "-ec", plant, "sh", folder, name], { cwd: "/" });
    plantAs(stranger, "theirs");
    const lines = `set -eu; root=$1; . "$root/scripts/environment.sh"; podmans_of "$2"; creations_of "$2"`;
    const found = (): string =>
      Bun.spawnSync(["sh", "-c", lines, "sh", root, scratch.path]).stdout.toString();
    expect(found()).toBe("");
    plantAs([], "ours");
    expect(found()).toBe(`${folder}/ours/podman\n0123456789abcdef\n`);
  },
);
