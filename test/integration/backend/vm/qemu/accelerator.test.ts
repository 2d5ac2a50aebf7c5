import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, mock, test } from "bun:test";
import { acceleratorCheck } from "../../../../../src/backend/vm/checks.ts";
import {
  type AcceleratorTrial,
  chooseAccelerator,
  trialLimitsMs,
  tryHost,
  tryAsDisk,
  tryAsFirmware,
} from "../../../../../src/backend/vm/qemu/accelerator.ts";
import { type Architecture } from "../../../../../src/backend/vm/qemu/architecture.ts";
import {
  brokenAcceleratorPath,
  forgetBrokenAccelerator,
  readBrokenAccelerator,
  rememberBrokenAccelerator,
} from "../../../../../src/backend/vm/qemu/broken-accelerator.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { outside, unmarked } from "../../../../../src/outside-text.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { x64, standIns, runtime, checked } from "../stand-in-programs.ts";

const best = (trials: readonly AcceleratorTrial[], architecture = x64) =>
  chooseAccelerator(trials, { forced: undefined, broken: undefined }, architecture);

test.each([
  [
    ["kvm", "tcg"],
    "kvm passes its test, but has broken a machine since this computer started: emulation failure.",
  ],
  [
    ["tcg"],
    "Only tcg works, which is about ten times slower. kvm does not work: failed to set MSR 0x10a.",
  ],
])(
  "once kvm has broken a machine, and %p pass their test, doctor says why tcg is used",
  async (works, expected) => {
    await using folder = await scratchFolder();
    await standIns(folder.path, { works });
    const { environment } = runtime(folder.path);
    await rememberBrokenAccelerator(environment, {
      accelerator: "kvm",
      reason: "emulation failure",
    });
    const outcome = await acceleratorCheck(
      openQemu(runtime(folder.path), x64),
      "linux",
      environment,
    ).run(neverAborted);
    expect(unmarked(outcomeText(outcome))).toStartWith(`warn: ${expected}`);
  },
);

test("the fastest accelerator that works is used, and the reasons against others are shown", async () => {
  await using folder = await scratchFolder();
  const attempt = async (works: readonly string[], platform: NodeJS.Platform) => {
    await standIns(folder.path, { works });
    const qemu = openQemu(runtime(folder.path), x64);
    return (await tryHost(qemu, platform, trialLimitsMs, neverAborted)).trials;
  };
  expect(await attempt(["tcg"], "linux")).toEqual([
    { accelerator: "kvm", problem: outside("failed to set MSR 0x10a") },
    { accelerator: "tcg", problem: undefined },
  ]);
  expect(best(await attempt(["kvm", "tcg"], "linux"))).toBe("kvm");
  expect(best(await attempt(["hvf", "tcg"], "darwin"))).toBe("hvf");
  const none = await attempt(["none"], "linux");
  expect(() => best(none)).toThrow(/kvm: failed to set MSR.*; tcg: failed/);
});

test("a broken accelerator is remembered until this computer restarts; other content of that file is ignored", async () => {
  await using folder = await scratchFolder();
  const environment = { XDG_CACHE_HOME: folder.path };
  const path = brokenAcceleratorPath(environment);
  expect(await readBrokenAccelerator(environment)).toBeUndefined();
  await rememberBrokenAccelerator(environment, { accelerator: "kvm", reason: "emulation failure" });
  expect(await readBrokenAccelerator(environment)).toEqual({
    accelerator: "kvm",
    reason: "emulation failure",
  });
  const stored = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  const others = [
    { ...stored, bootId: "another" },
    { ...stored, accelerator: "xen" },
    { ...stored, reason: 1 },
    [],
    "{",
  ];
  for (const other of others) {
    await writeFile(path, typeof other === "string" ? other : JSON.stringify(other));
    expect(await readBrokenAccelerator(environment)).toBeUndefined();
  }
  await writeFile(path, JSON.stringify({ ...stored, reason: "\u001B[2J\n" }));
  expect((await readBrokenAccelerator(environment))?.reason).toBe(" [2J ");
  await forgetBrokenAccelerator(environment);
  expect(await readBrokenAccelerator(environment)).toBeUndefined();
});

test("an accelerator that stops its machine is rejected at once, with QEMU's message", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { stops: ["kvm"] });
  const qemu = openQemu(
    { ...runtime(folder.path), environment: { PATH: `${folder.path}:/bin:/usr/bin` } },
    x64,
  );
  // Only a rejection before the limit ends this within the test's own limit.
  const hourMs = 3_600_000;
  const { trials } = await tryHost(
    qemu,
    "linux",
    { kvm: hourMs, hvf: hourMs, tcg: hourMs },
    neverAborted,
  );
  expect(unmarked(trials[0]!.problem!)).toEndWith(
    "an internal error (KVM internal error. Suberror: 1)",
  );
});

test.each([
  ["works, and translation is tried in it alone", {}, true, 1],
  ["doesn't work, and translation is tried without it", { hasSandbox: false }, false, 2],
])("the sandbox %s", async (_, features, isSandboxed, starts) => {
  await using folder = await scratchFolder();
  await standIns(folder.path, features);
  const run = mock(openQemu(runtime(folder.path), x64).run);
  const qemu = { ...openQemu(runtime(folder.path), x64), run };
  expect(await tryHost(qemu, "linux", trialLimitsMs, neverAborted)).toMatchObject({
    isSandboxed,
    trials: [{ accelerator: "kvm" }, { accelerator: "tcg", problem: undefined }],
  });
  const translated = run.mock.calls.filter(([{ words }]) => words.includes("tcg"));
  expect(translated).toHaveLength(starts);
});

const lack = Bun.which("qemu-system-x86_64") === null ? "no qemu-system-x86_64 here" : undefined;

test.skipIf(lack !== undefined)(
  `the probe succeeds as firmware and as a disk (${lack ?? "here"})`,
  async () => {
    const environment = { PATH: process.env["PATH"] ?? "" };
    const qemu = openQemu({ environment, progress: silentProgress }, x64);
    expect(await tryAsFirmware(qemu, "tcg", neverAborted)).toBeUndefined();
    expect(await tryAsDisk(qemu, "tcg", neverAborted)).toBeUndefined();
    // It fails if something other than the probe ends QEMU.
    const other: Architecture = { ...x64, probe: { ...x64.probe, status: 35 } };
    expect(await tryAsDisk({ ...qemu, architecture: other }, "tcg", neverAborted)).toBe(
      "it exited with status 33",
    );
  },
);

test("an accelerator that hangs doesn't work", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { hangs: ["kvm"] });
  const qemu = openQemu(
    { ...runtime(folder.path), environment: { PATH: `${folder.path}:/bin:/usr/bin` } },
    x64,
  );
  const { trials } = await tryHost(qemu, "linux", { ...trialLimitsMs, kvm: 500 }, neverAborted);
  expect(trials).toEqual([
    { accelerator: "kvm", problem: "it hangs" },
    { accelerator: "tcg", problem: undefined },
  ]);
  expect(best(trials)).toBe("tcg");
  const gone = AbortSignal.abort(new Error("stopped"));
  expect((await failureOf(tryHost(qemu, "linux", trialLimitsMs, gone))).message).toBe("stopped");
});

test("without a folder for temporary files, the check of the accelerator says how to set one", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  const usual = process.env["TMPDIR"];
  try {
    process.env["TMPDIR"] = join(folder.path, "nowhere");
    const failure = await failureOf(checked(folder.path, "accelerator"));
    expect(failure.id).toBe("machine-not-set-up");
    expect(failure.message).toBe(
      `Cannot create a temporary folder in ${folder.path}/nowhere: no such file or directory.`,
    );
    expect(failure.hint).toContain("TMPDIR");
  } finally {
    if (usual === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = usual;
  }
});
