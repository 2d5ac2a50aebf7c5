import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { feedStdin } from "../../../../src/ssh/session/ssh-process.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** The other processes whose stdin is this file. */
function readersOf(path: string): readonly string[] {
  const ids = readdirSync("/proc").filter(
    (name) => /^[0-9]+$/.test(name) && Number(name) !== process.pid,
  );
  return ids.filter((id) => {
    try {
      return readlinkSync(join("/proc", id, "fd", "0")) === path;
    } catch {
      return false;
    }
  });
}

test.skipIf(process.platform !== "linux")(
  "after the receiver has ended, nothing reads what the user types",
  async () => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "typed");
    spawnSync("sh", ["-c", 'mkfifo "$0"', path]);
    // Also open for writing, like a terminal, so that it never ends.
    const source = openSync(path, "r+");
    try {
      await using receiver = Bun.spawn(["head", "-c", "1"], { stdin: "pipe", stdout: "ignore" });
      const feed = {
        head: "x".repeat(1_000_000),
        source,
        sink: receiver.stdin,
        environment: process.env,
      };
      await feedStdin(feed, neverAborted);
      await until("cat has ended", () => readersOf(path).length === 0);
      expect(readersOf(path)).toEqual([]);
    } finally {
      for (const id of readersOf(path)) process.kill(Number(id));
      closeSync(source);
    }
  },
);

test.each(["before it begins", "while nobody types"])(
  "an interruption %s ends it",
  async (when) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "typed");
    spawnSync("sh", ["-c", 'mkfifo "$0"', path]);
    const source = openSync(path, "r+");
    try {
      const stop = new AbortController();
      if (when === "before it begins") stop.abort();
      await using receiver = Bun.spawn(["cat"], { stdin: "pipe", stdout: "pipe" });
      const feed = { head: "head", source, sink: receiver.stdin, environment: process.env };
      const feeding = feedStdin(feed, stop.signal);
      await receiver.stdout.getReader().read();
      stop.abort();
      await feeding;
      receiver.kill();
    } finally {
      closeSync(source);
    }
  },
);
