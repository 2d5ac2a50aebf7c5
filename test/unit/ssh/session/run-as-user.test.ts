/** A user of a node who runs a command. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import script from "../../../../src/ssh/session/run-as-user.sh" with { type: "text" };
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("a number that is a user's id is not a user's name", () => {
  const words = ["-c", script, "sh", "0", "", "true", "word"];
  const { status, stderr } = spawnSync("sh", words, { encoding: "utf8" });
  expect(stderr).toBe("There is no user 0 on this node.\n");
  expect(status).toBe(255);
});

test("a user who may not run commands is no failure of the command", async () => {
  await using folder = await scratchFolder();
  const runuser = join(folder.path, "runuser");
  writeFileSync(runuser, '#!/bin/sh\necho "runuser: Account expired" >&2; exit 1\n');
  chmodSync(runuser, 0o755);
  const env = { PATH: `${folder.path}:${process.env["PATH"]}` };
  const words = ["-c", script, "sh", "root", "", "true", "word"];
  const { status, stderr } = spawnSync("sh", words, { encoding: "utf8", env });
  expect([status, stderr]).toEqual([255, "runuser: Account expired\n"]);
});
