/** QEMU's programs, with scripts in their place. */

import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, mock, spyOn, test } from "bun:test";
import { acceleratorCheck, vmChecks } from "../../../../../src/backend/vm/checks.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu, qemuFailure } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { outside } from "../../../../../src/outside-text.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const x64 = architectureOf("x64");
const { signal } = new AbortController();

afterEach(() => mock.restore());

/** The programs, all of which run this script. */
async function openPrograms(script: string) {
  const folder = await scratchFolder();
  for (const name of ["qemu-system-x86_64", "qemu-img"]) {
    await writeFile(join(folder.path, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder.path, name), 0o755);
  }
  const environment = {
    PATH: folder.path,
    XDG_STATE_HOME: folder.path,
    XDG_CACHE_HOME: folder.path,
  };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  return { folder: folder.path, runtime, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

test.each([["system"], ["image"]] as const)(
  "a program that hangs is killed after ten minutes: %s",
  async (program) => {
    await using programs = await openPrograms("exec /bin/sleep 600");
    const after = AbortSignal.timeout.bind(AbortSignal);
    const limits = spyOn(AbortSignal, "timeout").mockImplementation((ms) => after(ms / 1000));
    const qemu = openQemu(programs.runtime, x64);
    const error = await failureOf(qemu[program](["--version"], signal));
    const name = program === "system" ? "qemu-system-x86_64" : "qemu-img";
    expect(error.id).toBe("deadline-passed");
    expect(error.message).toMatch(new RegExp(`^${name} .* 600 s`));
    expect(limits.mock.calls).toEqual([[600_000]]);
  },
);

test("an interrupted program rejects with the reason of the interruption", async () => {
  await using programs = await openPrograms("exec /bin/sleep 600");
  const interrupted = AbortSignal.timeout(50);
  const asked = openQemu(programs.runtime, x64).image(["--version"], interrupted);
  expect((await failureOf(asked)).message).toBe((interrupted.reason as Error).message);
});

test("a program that isn't executable counts as missing", async () => {
  await using programs = await openPrograms("exit 0");
  await chmod(join(programs.folder, "qemu-img"), 0o644);
  const error = await failureOf(openQemu(programs.runtime, x64).image(["--version"], signal));
  expect(error).toMatchObject({ id: "machine-not-set-up", facts: { program: "qemu-img" } });
});

test.each([
  [
    "qemu-img: warning: x\nqemu-img: Could not open 'x': No.\n",
    "engine-failed",
    ": Could not open 'x': No.",
  ],
  [
    "qemu-img: Could not open 'x': Failed to get \"write\" lock\nIs another process using the image [x]?\n",
    "engine-failed",
    ": Could not open 'x': Failed to get \"write\" lock.",
  ],
  ["", "engine-failed", "status 1."],
  [
    "cannot set up guest memory: Cannot allocate",
    "capacity-lacking",
    ": cannot set up guest memory: Cannot allocate.",
  ],
  [
    "write failed: No space left on device",
    "capacity-lacking",
    ": write failed: No space left on device.",
  ],
] as const)("what it printed last tells what is wrong: %j", (stderr, id, end) => {
  const error = qemuFailure("what", { status: 1, stdout: "", stderr });
  expect(error.id).toBe(id);
  expect(error.message).toEndWith(end);
});

test.each([
  ["echo QEMU emulator version 8.2.1", { status: "pass", message: "Version 8.2" }],
  ["echo QEMU emulator version 7.2.0", { status: "pass", message: "Version 7.2" }],
])("a QEMU that answers %j is new enough", async (script, expected) => {
  await using programs = await openPrograms(script);
  const check = vmChecks(programs.runtime, x64).find(({ name }) => name === "qemu")!;
  expect(await check.run(signal)).toMatchObject(expected);
  await rm(join(programs.folder, "qemu-img"));
  expect(await failureOf(check.run(signal))).toMatchObject({
    id: "machine-not-set-up",
    facts: { program: "qemu-img" },
  });
});

test("a program that doesn't tell its version is shown with what it says", async () => {
  await using programs = await openPrograms("echo hello");
  const check = vmChecks(programs.runtime, x64).find(({ name }) => name === "qemu")!;
  expect((await failureOf(check.run(signal))).message).toBe(
    "qemu-system-x86_64 --version failed: hello.",
  );
});

test.each([
  ["exit 33", []],
  [
    `case "$*" in *'-accel tcg '*) echo no tcg >&2; exit 1 ;; esac; exit 33`,
    [`tcg does not work: ${outside("no tcg")}`],
  ],
])("if kvm works, with the script %j, doctor also says what does not", async (script, details) => {
  await using programs = await openPrograms(script);
  const check = acceleratorCheck(
    openQemu(programs.runtime, x64),
    "linux",
    programs.runtime.environment,
  );
  expect(await check.run(signal)).toEqual({ status: "pass", message: "kvm", details });
});
