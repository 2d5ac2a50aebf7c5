/** The clock of a node: whose it is, and how far it is ahead, which the node's deadline reads while it changes. */
import { readFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import clockFile from "../../../../src/platform/faults/clock.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("what is ahead is replaced in one step, so that the deadline never reads nothing", async () => {
  await using scratch = await scratchFolder();
  const offset = join(scratch.path, "offset");
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  await writeFile(offset, `${boot} 30 99999999\n`);
  await writeFile(join(scratch.path, "clock.base"), "1700000000\n");
  await writeFile(join(scratch.path, "0123abcd.offset"), "60 99999999\n");
  const script = `
${shellText(clockFile, { ID: "0123abcd", FOLDER: scratch.path, OFFSET: 60, DURATION: 60, DEADLINE_OFFSET: offset })}
date() { :; }
exec 3<"$DEADLINE_OFFSET"
set_clock && cat <&3 && cat "$DEADLINE_OFFSET"`;
  expect(await new Response(Bun.spawn(["sh", "-c", script]).stdout).text()).toBe(
    `${boot} 30 99999999\n${boot} 60 99999999\n`,
  );
});

test("the clock of a container's computer stays as it is", async () => {
  await using scratch = await scratchFolder();
  const programs = join(scratch.path, "programs");
  await mkdir(programs);
  await writeFile(
    join(programs, "systemd-detect-virt"),
    '#!/bin/sh\n[ "$*" = "--quiet --container" ]\n',
    {
      mode: 0o755,
    },
  );
  const folder = join(scratch.path, "faults");
  await mkdir(folder);
  const script = `
${shellText(clockFile, { ID: "0123abcd", FOLDER: folder, OFFSET: 60, DURATION: 60, DEADLINE_OFFSET: join(folder, "offset") })}
PATH=${programs}:$PATH
date() { echo set; }
systemctl() { echo stopped; }
fail() { echo "$*"; exit 1; }
begin`;
  const child = Bun.spawn(["sh", "-c", script]);
  expect(await new Response(child.stdout).text()).toStartWith("it is a container");
  expect(await child.exited).toBe(1);
  expect(await readdir(folder)).toEqual([]);
});
