/** What is said of QEMUs that are missing, old or crippled, by scripts that stand for them. */
import { expect, test } from "bun:test";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bestAccelerator, trialLimitsMs, tryAccelerators } from "../../../src/backend/vm/accelerator.ts";
import { architectureOf } from "../../../src/backend/vm/architecture.ts";
import { vmChecks } from "../../../src/backend/vm/checks.ts";
import { openQemu } from "../../../src/backend/vm/qemu.ts";
import { resolveCreation } from "../../../src/backend/vm/resolve-creation.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { silentProgress } from "../../../src/system/progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const x64 = architectureOf("x64");
const never = new AbortController().signal;

interface StandIn {
  readonly version?: string;
  /** Accelerators that work. */
  readonly works?: readonly string[];
  /** Accelerators under which machines never end. */
  readonly hangs?: readonly string[];
  readonly networks?: readonly string[];
  readonly hasVvfat?: boolean;
}

/** Programs that answer as QEMU's do; all that they don't know fails. */
async function standIns(folder: string, { version = "8.2.1", works = ["tcg"], ...features }: StandIn) {
  const { hangs = [], networks = ["user", "stream"], hasVvfat = true } = features;
  const system = `case "$*" in
  --version) echo 'QEMU emulator version ${version} (Debian)' ;;
  '-netdev help') printf '%s\\n' ${networks.join(" ")} ;;
  *-bios*)
    for name in ${hangs.join(" ")}; do case "$*" in *"-accel $name "*) exec sleep 60 ;; esac; done
    for name in ${works.join(" ")}; do case "$*" in *"-accel $name "*) exit 33 ;; esac; done
    echo 'qemu-system-x86_64: warning: never mind' >&2
    echo 'qemu-system-x86_64: error: failed to set MSR 0x10a' >&2
    exit 134 ;;
  *) exit 1 ;;
esac`;
  const image = `case $1 in --version) echo 'qemu-img version ${version}' ;; info) exit ${hasVvfat ? 0 : 1} ;; esac`;
  for (const [name, script] of [
    ["qemu-system-x86_64", system],
    // Its folder of data is where it stands.
    ["qemu-system-aarch64", `case "$*" in '-L help') echo "${folder}" ;; *) exit 1 ;; esac`],
    ["qemu-img", image],
  ] as const) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder, name), 0o755);
  }
}

const surroundings = (folder: string) => ({
  environment: { PATH: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder },
  clock: systemClock,
  progress: silentProgress,
});

/** What the check of this name says, or throws. */
async function checked(folder: string, name: string, architecture = x64) {
  const check = vmChecks(surroundings(folder), architecture).find((each) => each.name === name)!;
  return check.run(never);
}

test("without QEMU, one check says so with how to install it, and those that need it are skipped", async () => {
  await using folder = await scratchFolder();
  const failure = await failureOf(checked(folder.path, "qemu"));
  expect(failure.id).toBe("machine-not-set-up");
  expect(failure.hint).toContain("apt-get install qemu-system-x86 qemu-utils");
  expect(await checked(folder.path, "accelerator")).toMatchObject({ status: "skip" });
  expect(await checked(folder.path, "qemu features")).toMatchObject({ status: "skip" });
  const arm64 = architectureOf("arm64");
  expect((await failureOf(checked(folder.path, "qemu", arm64))).hint).toContain("qemu-system-arm qemu-efi-aarch64");
  expect(await checked(folder.path, "firmware", arm64)).toMatchObject({ status: "skip" });
});

test("an old QEMU runs single machines only", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { version: "6.2.0" });
  expect(await checked(folder.path, "qemu")).toMatchObject({
    status: "warn",
    message: "Version 6.2 can run single machines only: their networks need 7.2.",
  });
  const qemu = openQemu(surroundings(folder.path), x64);
  const image = join(folder.path, "qemu-img");
  const options = { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024, image: { source: image } };
  const resolve = (agents: number) => {
    const counts = { master: 1, agent: agents, public_agent: 0 };
    const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
    return resolveCreation(qemu, request, surroundings(folder.path).environment, never);
  };
  expect(await resolve(0)).toMatchObject({ qemuVersion: "6.2", accelerator: "tcg" });
  expect((await failureOf(resolve(1))).message).toContain("stream networks for that came with 7.2");
});

test("nodes that want more memory than there is are refused", async () => {
  await using folder = await scratchFolder();
  const counts = { master: 1, agent: 0, public_agent: 0 };
  const options = { memoryMegabytes: 2 ** 40, cpus: 1, diskMegabytes: 1024 };
  const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
  const { environment } = surroundings(folder.path);
  const failure = await failureOf(
    resolveCreation(openQemu(surroundings(folder.path), x64), request, environment, never),
  );
  expect(failure.id).toBe("capacity-lacking");
  expect(failure.hint).toContain("--memory");
});

test("a distribution with version 2 of the control groups is refused where version 1 is needed, with those that fit", async () => {
  await using folder = await scratchFolder();
  const counts = { master: 1, agent: 0, public_agent: 0 };
  const options = { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024 };
  const request = { distribution: "debian-12", options, counts, needsCgroups1: true };
  const { environment } = surroundings(folder.path);
  const failure = await failureOf(
    resolveCreation(openQemu(surroundings(folder.path), x64), request, environment, never),
  );
  expect(failure).toMatchObject({ id: "machine-not-set-up" });
  expect(failure.hint).toContain("almalinux-8, rocky-8");
});

test("the fastest accelerator that works is taken, and why others don't is told", async () => {
  await using folder = await scratchFolder();
  const attempt = async (works: readonly string[], platform: NodeJS.Platform) => {
    await standIns(folder.path, { works });
    return tryAccelerators(openQemu(surroundings(folder.path), x64), platform, trialLimitsMs, never);
  };
  expect(await attempt(["tcg"], "linux")).toEqual([
    { accelerator: "kvm", problem: "failed to set MSR 0x10a" },
    { accelerator: "tcg", problem: undefined },
  ]);
  expect(bestAccelerator(await attempt(["kvm", "tcg"], "linux"), x64)).toBe("kvm");
  expect(bestAccelerator(await attempt(["hvf", "tcg"], "darwin"), x64)).toBe("hvf");
  const none = await attempt(["none"], "linux");
  expect(() => bestAccelerator(none, x64)).toThrow(/kvm: failed to set MSR.*; tcg: failed/);
});

test("an accelerator that hangs is one that does not work", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { hangs: ["kvm"] });
  const qemu = openQemu({ ...surroundings(folder.path), environment: { PATH: `${folder.path}:/bin:/usr/bin` } }, x64);
  const trials = await tryAccelerators(qemu, "linux", { ...trialLimitsMs, kvm: 500 }, never);
  expect(trials).toEqual([
    { accelerator: "kvm", problem: "it hangs" },
    { accelerator: "tcg", problem: undefined },
  ]);
  expect(bestAccelerator(trials, x64)).toBe("tcg");
  const gone = AbortSignal.abort(new Error("stopped"));
  expect((await failureOf(tryAccelerators(qemu, "linux", trialLimitsMs, gone))).message).toBe("stopped");
});

test("firmware that is missing is told with its package, and found where QEMU's data are", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  expect(await checked(folder.path, "firmware")).toMatchObject({ status: "pass", message: "BIOS, built in" });
  const arm64 = architectureOf("arm64");
  const [program, variables] = [join(folder.path, "code.fd"), join(folder.path, "vars.fd")];
  await mkdir(join(folder.path, "firmware"));
  const mapping = {
    device: "flash",
    executable: { filename: program, format: "raw" },
    "nvram-template": { filename: variables, format: "raw" },
  };
  const targets = [{ architecture: "aarch64", machines: ["virt-*"] }];
  // Before all that this machine may have of its own.
  await writeFile(join(folder.path, "firmware", "00-own.json"), JSON.stringify({ mapping, targets, features: [] }));
  await writeFile(program, "");
  const absent = await failureOf(checked(folder.path, "firmware", arm64));
  expect(absent.id).toBe("machine-not-set-up");
  expect(absent.hint).toContain("qemu-efi-aarch64");
  await writeFile(variables, "");
  expect(await checked(folder.path, "firmware", arm64)).toMatchObject({ status: "pass", message: program });
});

test.each(["accelerator", "qemu features"])(
  "without a folder for temporary files, %s says how to name one",
  async (name) => {
    await using folder = await scratchFolder();
    await standIns(folder.path, {});
    const usual = process.env["TMPDIR"];
    try {
      process.env["TMPDIR"] = join(folder.path, "nowhere");
      const failure = await failureOf(checked(folder.path, name));
      expect(failure.id).toBe("machine-not-set-up");
      expect(failure.message).toBe(`No temporary folder can be made in ${folder.path}/nowhere: ENOENT.`);
      expect(failure.hint).toContain("TMPDIR");
    } finally {
      if (usual === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = usual;
    }
  },
);

test("what a build of QEMU lacks is named", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  expect(await checked(folder.path, "qemu features")).toMatchObject({ status: "pass" });
  await standIns(folder.path, { networks: ["tap", "stream"], hasVvfat: false });
  expect(await checked(folder.path, "qemu features")).toMatchObject({
    status: "fail",
    message: "This QEMU was built without user networks (slirp) and the block driver vvfat.",
  });
});
