/** `run` with a state folder on a read-only file system, where `inspect` works too, or on a full disk. */
import { describe, expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";

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
      for (const path of [directory, temporary, join(scratch.path, "full")]) await mkdir(path);
      const files = creationFiles(directory);
      await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
      await createKnownHosts(files.knownHosts).pin(
        "127.0.0.1",
        server.port,
        wireKey(server.firstHostKey.publicKey),
      );
      const program = join(import.meta.dir, "run-on-node-program.ts");
      const request = JSON.stringify({
        directory,
        port: server.port,
        words: ["echo hello; exit 7"],
        fetches: [],
      });
      const fill = 'cat /dev/zero 2>/dev/null >"$1/filler"; shift && exec "$@"';
      const child = Bun.spawn(
        [
          "unshare",
          "-m",
          "sh",
          "-c",
          `${mount} && ${fill}`,
          "sh",
          directory,
          process.execPath,
          program,
          request,
        ],
        { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, TMPDIR: temporary } },
      );
      const [stdout, stderr] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect({ status: await child.exited, stdout, stderr }).toEqual({
        status: 7,
        stdout: "hello\n",
        stderr: "",
      });
      expect(await readdir(temporary)).toEqual([]);
    });
  },
);
