/** Reports about missing, old or incomplete QEMUs, with scripts in place of QEMU. */

import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { acceleratorCheck, vmChecks } from "../../../../src/backend/vm/checks.ts";
import { resolveCreation } from "../../../../src/backend/vm/plan.ts";
import {
  type AcceleratorTrial,
  chooseAccelerator,
  trialLimitsMs,
  tryAccelerators,
  tryAsDisk,
  tryAsFirmware,
} from "../../../../src/backend/vm/qemu/accelerator.ts";
import { type Architecture, architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import {
  brokenAcceleratorPath,
  forgetBrokenAccelerator,
  readBrokenAccelerator,
  rememberBrokenAccelerator,
} from "../../../../src/backend/vm/qemu/broken-accelerator.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { outside, unmarked } from "../../../../src/outside-text.ts";
import { silentProgress, systemClock } from "../../../../src/system/runtime.ts";
import { bootableDisk } from "../../../support/bootable-disk.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const x64 = architectureOf("x64");
const best = (trials: readonly AcceleratorTrial[], architecture = x64) =>
  chooseAccelerator(trials, { forced: undefined, broken: undefined }, architecture);

interface StandIn {
  readonly version?: string;
  /** Accelerators that work. */
  readonly works?: readonly string[];
  /** Accelerators whose machines never end. */
  readonly hangs?: readonly string[];
  /** Accelerators that stop their machines. */
  readonly stops?: readonly string[];
  /** A CPU model that machines can't have. */
  readonly refuses?: string;
  readonly networks?: readonly string[];
  readonly hasVvfat?: boolean;
}

/** Programs that answer like QEMU's, and fail on arguments that they don't know. */
async function standIns(
  folder: string,
  { version = "8.2.1", works = ["tcg"], ...features }: StandIn,
) {
  const {
    hangs = [],
    stops = [],
    refuses = "none",
    networks = ["user", "stream"],
    hasVvfat = true,
  } = features;
  const system = `case "$*" in
  --version) echo 'QEMU emulator version ${version} (Debian)' ;;
  '-netdev help') printf '%s\\n' ${networks.join(" ")} ;;
  *"-cpu ${refuses}"*) echo "qemu-system-x86_64: unable to find CPU model '${refuses}'" >&2; exit 1 ;;
  *isa-debug-exit*)
    for name in ${hangs.join(" ")}; do case "$*" in *"-accel $name "*) exec sleep 60 ;; esac; done
    for name in ${stops.join(" ")}; do case "$*" in *"-accel $name "*)
      echo 'KVM internal error. Suberror: 1' >&2
      sleep 0.2
      echo '{"event": "STOP"}'
      exec sleep 60 ;; esac; done
    for name in ${works.join(" ")}; do case "$*" in *"-accel $name "*) exit 33 ;; esac; done
    echo 'qemu-system-x86_64: warning: never mind' >&2
    echo 'qemu-system-x86_64: error: failed to set MSR 0x10a' >&2
    exit 134 ;;
  *) exit 1 ;;
esac`;
  const image = `case $1 in --version) echo 'qemu-img version ${version}' ;; 
  info) case "$*" in *disk.raw) echo '{"format": "raw", "virtual-size": 1048576}' ;; *) exit ${hasVvfat ? 0 : 1} ;; esac ;; esac`;
  await writeFile(join(folder, "disk.raw"), bootableDisk());
  for (const [name, script] of [
    ["qemu-system-x86_64", system],
    // Its data folder is the one that contains it.
    ["qemu-system-aarch64", `case "$*" in '-L help') echo "${folder}" ;; *) exit 1 ;; esac`],
    ["qemu-img", image],
  ] as const) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder, name), 0o755);
  }
}

const runtime = (folder: string) => ({
  environment: { PATH: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder },
  clock: systemClock,
  progress: silentProgress,
});

/** Renders the outcome of the check with this name. */
async function checked(folder: string, name: string, architecture = x64) {
  const check = vmChecks(runtime(folder), architecture).find((each) => each.name === name)!;
  return check.run(neverAborted);
}

test("without QEMU, one check says how to install it, and those that need it are skipped", async () => {
  await using folder = await scratchFolder();
  const failure = await failureOf(checked(folder.path, "qemu"));
  expect(failure.id).toBe("machine-not-set-up");
  expect(failure.hint).toContain("apt-get install qemu-system-x86 qemu-utils");
  expect(await checked(folder.path, "accelerator")).toMatchObject({ status: "skip" });
  expect(await checked(folder.path, "qemu features")).toMatchObject({ status: "skip" });
  const arm64 = architectureOf("arm64");
  expect((await failureOf(checked(folder.path, "qemu", arm64))).hint).toContain(
    "qemu-system-arm qemu-efi-aarch64",
  );
  expect(await checked(folder.path, "firmware", arm64)).toMatchObject({ status: "skip" });
});

test("an old QEMU can only run clusters of one machine", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { version: "6.2.0" });
  expect(await checked(folder.path, "qemu")).toMatchObject({
    status: "warn",
    message: "Version 6.2 can only run single machines: networks between machines need 7.2.",
  });
  const qemu = openQemu(runtime(folder.path), x64);
  const image = join(folder.path, "disk.raw");
  const options = { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024, image: { source: image } };
  const resolve = (agents: number) => {
    const counts = { master: 1, agent: agents, public_agent: 0 };
    const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
    return resolveCreation(qemu, request, runtime(folder.path).environment, neverAborted);
  };
  expect(await resolve(0)).toMatchObject({
    qemuVersion: "6.2",
    accelerator: "tcg",
    isSandboxed: true,
  });
  expect((await failureOf(resolve(1))).message).toContain(
    "needs the stream networks of version 7.2",
  );
});

test("a CPU model that QEMU refuses is an error that says where the models are listed", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { refuses: "Itanium" });
  const resolve = async (cpuModel: string) => {
    const counts = { master: 1, agent: 0, public_agent: 0 };
    const image = { source: join(folder.path, "disk.raw") };
    const options = { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024, cpuModel, image };
    const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
    return resolveCreation(
      openQemu(runtime(folder.path), x64),
      request,
      runtime(folder.path).environment,
      neverAborted,
    );
  };
  expect(await resolve("Nehalem")).toMatchObject({ accelerator: "tcg" });
  const failure = await failureOf(resolve("Itanium"));
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    facts: { model: "Itanium", accelerator: "tcg" },
  });
  expect(failure.message).toBe(
    "The CPU model Itanium does not work under tcg: unable to find CPU model 'Itanium'.",
  );
  expect(failure.hint).toContain("qemu-system-x86_64 -cpu help");
});

test("what is no disk that boots, or larger than the nodes' disks, is refused before it counts as present", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  const pipe = join(folder.path, "pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  const resolve = async (source: string, diskMegabytes = 1024) => {
    const counts = { master: 1, agent: 0, public_agent: 0 };
    const options = { memoryMegabytes: 256, cpus: 1, diskMegabytes, image: { source } };
    const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
    const { environment } = runtime(folder.path);
    return resolveCreation(openQemu(runtime(folder.path), x64), request, environment, neverAborted);
  };
  const disk = join(folder.path, "disk.raw");
  expect((await resolve(disk)).image.path).toBe(disk);
  expect(await failureOf(resolve(disk, 0))).toMatchObject({ id: "bad-usage" });
  for (const [path, what] of [
    [pipe, "is no regular file"],
    ["/dev/null", "is no regular file"],
    [folder.path, "is no regular file"],
    [join(folder.path, "qemu-img"), "is a text or a web page"],
    [join(folder.path, "absent"), "does not exist, or this user may not read it"],
  ] as const) {
    const failure = await failureOf(resolve(path));
    expect(failure).toMatchObject({ id: "image-not-found", facts: { image: path } });
    expect(failure.message).toContain(what);
  }
});

test("nodes that need more memory than this machine has are rejected", async () => {
  await using folder = await scratchFolder();
  const counts = { master: 1, agent: 0, public_agent: 0 };
  const options = { memoryMegabytes: 2 ** 40, cpus: 1, diskMegabytes: 1024 };
  const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
  const { environment } = runtime(folder.path);
  const failure = await failureOf(
    resolveCreation(openQemu(runtime(folder.path), x64), request, environment, neverAborted),
  );
  expect(failure.id).toBe("capacity-lacking");
  expect(failure.hint).toContain("`memory`");
});

test("a distribution with control groups 2 is rejected if version 1 is needed, with those that fit", async () => {
  await using folder = await scratchFolder();
  const counts = { master: 1, agent: 0, public_agent: 0 };
  const options = { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024 };
  const request = { distribution: "debian-12", options, counts, needsCgroups1: true };
  const { environment } = runtime(folder.path);
  const failure = await failureOf(
    resolveCreation(openQemu(runtime(folder.path), x64), request, environment, neverAborted),
  );
  expect(failure).toMatchObject({ id: "machine-not-set-up" });
  expect(failure.hint).toContain("almalinux-8, rocky-8");
});

test.each([
  ["linux", "missing", "There is no "],
  ["linux", "there", "can be opened, but its kernel cannot run machines here"],
  ["darwin", "missing", "Use a QEMU that was built with hvf"],
] as const)(
  "if only tcg works on %s, and the device is %s, a warning says how to get a faster accelerator",
  async (platform, name, remedy) => {
    await using folder = await scratchFolder();
    await standIns(folder.path, { works: ["tcg"] });
    await writeFile(join(folder.path, "there"), "");
    const { environment } = runtime(folder.path);
    const check = acceleratorCheck(
      openQemu(runtime(folder.path), x64),
      platform,
      environment,
      join(folder.path, name),
    );
    const outcome = await check.run(neverAborted);
    expect(outcome).toMatchObject({ status: "warn", remedy: expect.stringContaining(remedy) });
    // Membership of a group helps only if the device is closed to this user.
    expect(JSON.stringify(outcome)).not.toContain("usermod");
  },
);

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
    return tryAccelerators(
      openQemu(runtime(folder.path), x64),
      platform,
      trialLimitsMs,
      neverAborted,
    );
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

test("a QEMU without required features is too old", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { version: "5.2.0" });
  expect(await checked(folder.path, "qemu")).toMatchObject({
    status: "fail",
    message: "Version 5.2 is too old.",
  });
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
  const trials = await tryAccelerators(
    qemu,
    "linux",
    { kvm: hourMs, hvf: hourMs, tcg: hourMs },
    neverAborted,
  );
  expect(unmarked(trials[0]!.problem!)).toEndWith(
    "an internal error (KVM internal error. Suberror: 1)",
  );
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
  const trials = await tryAccelerators(qemu, "linux", { ...trialLimitsMs, kvm: 500 }, neverAborted);
  expect(trials).toEqual([
    { accelerator: "kvm", problem: "it hangs" },
    { accelerator: "tcg", problem: undefined },
  ]);
  expect(best(trials)).toBe("tcg");
  const gone = AbortSignal.abort(new Error("stopped"));
  expect((await failureOf(tryAccelerators(qemu, "linux", trialLimitsMs, gone))).message).toBe(
    "stopped",
  );
});

test("missing firmware is reported with its package, and found in QEMU's data folder", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  expect(await checked(folder.path, "firmware")).toMatchObject({
    status: "pass",
    message: "BIOS, built in",
  });
  const arm64 = architectureOf("arm64");
  const [program, variables] = [join(folder.path, "code.fd"), join(folder.path, "vars.fd")];
  await mkdir(join(folder.path, "firmware"));
  const mapping = {
    device: "flash",
    executable: { filename: program, format: "raw" },
    "nvram-template": { filename: variables, format: "raw" },
  };
  const targets = [{ architecture: "aarch64", machines: ["virt-*"] }];
  // Before all programs of this machine.
  await writeFile(
    join(folder.path, "firmware", "00-own.json"),
    JSON.stringify({ mapping, targets, features: [] }),
  );
  await writeFile(program, "");
  const absent = await failureOf(checked(folder.path, "firmware", arm64));
  expect(absent.id).toBe("machine-not-set-up");
  expect(absent.hint).toContain("qemu-efi-aarch64");
  await writeFile(variables, "");
  expect(await checked(folder.path, "firmware", arm64)).toMatchObject({
    status: "pass",
    message: program,
  });
});

test.each(["accelerator", "qemu features"])(
  "without a folder for temporary files, %s says how to set one",
  async (name) => {
    await using folder = await scratchFolder();
    await standIns(folder.path, {});
    const usual = process.env["TMPDIR"];
    try {
      process.env["TMPDIR"] = join(folder.path, "nowhere");
      const failure = await failureOf(checked(folder.path, name));
      expect(failure.id).toBe("machine-not-set-up");
      expect(failure.message).toBe(
        `Cannot create a temporary folder in ${folder.path}/nowhere: ENOENT.`,
      );
      expect(failure.hint).toContain("TMPDIR");
    } finally {
      if (usual === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = usual;
    }
  },
);

test("features that a build of QEMU lacks are named", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  expect(await checked(folder.path, "qemu features")).toMatchObject({ status: "pass" });
  await standIns(folder.path, { networks: ["tap", "stream"], hasVvfat: false });
  expect(await checked(folder.path, "qemu features")).toMatchObject({
    status: "fail",
    message: "This QEMU was built without user networks (slirp) and the block driver vvfat.",
  });
});
