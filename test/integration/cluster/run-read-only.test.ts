/** `run` with a state folder on a read-only file system, where `inspect` works too, or on a full disk. */
import { describe, expect, test } from "bun:test";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { ended, runOnNodeWords } from "./run-on-node.ts";

const mountsLack =
  Bun.which("unshare") !== null && Bun.spawnSync(["unshare", "-m", "true"]).success
    ? undefined
    : "no own mounts here";
const lack = opensshLack ?? mountsLack;

describe.skipIf(lack !== undefined)(
  `a state folder that cannot be written (${lack ?? "here"})`,
  () => {
    test.each([
      ["read-only", 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'],
      [
        "full",
        'mount -t tmpfs -o size=64k t "$1/../full" && cp -p "$1"/* "$1/../full" && mount --move "$1/../full" "$1"',
      ],
    ])("run works if it is %s, and leaves nothing elsewhere", async (_, mount) => {
      await using scratch = await scratchFolder();
      await using server = await startOpensshServer([]);
      const [directory, temporary] = [join(scratch.path, "state"), join(scratch.path, "tmp")];
      for (const path of [temporary, join(scratch.path, "full")]) await mkdir(path);
      await makeFolderFor(server, directory);
      const program = runOnNodeWords({
        directory,
        port: server.port,
        words: ["echo hello; exit 7"],
      });
      const fill = 'cat /dev/zero 2>/dev/null >"$1/filler"; shift && exec "$@"';
      const words = ["unshare", "-m", "sh", "-c", `${mount} && ${fill}`, "sh", directory];
      const end = await ended([...words, ...program], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, TMPDIR: temporary },
      });
      expect(end).toEqual({ status: 7, stdout: "hello\n", stderr: "" });
      expect(await readdir(temporary)).toEqual([]);
    });
  },
);
