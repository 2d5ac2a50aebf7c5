import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { acceleratorCheck } from "../../../../src/backend/vm/checks.ts";
import { resolveCreation } from "../../../../src/backend/vm/plan.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { x64, standIns, runtime, checked } from "./stand-in-programs.ts";

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

/** Resolves a creation of one master from a disk in this folder. */
async function resolveIn(
  folder: string,
  { agents = 0, cpuModel }: { readonly agents?: number; readonly cpuModel?: string },
) {
  const image = { source: join(folder, "disk.raw") };
  const hardware = { memoryMegabytes: 256, cpus: 1, ...(cpuModel !== undefined && { cpuModel }) };
  const options = { ...hardware, diskMegabytes: 1024, image };
  const counts = { master: 1, agent: agents, public_agent: 0 };
  const request = { distribution: "debian-12", options, counts, needsCgroups1: false };
  const { environment } = runtime(folder);
  return resolveCreation(openQemu(runtime(folder), x64), request, environment, neverAborted);
}

test("an old QEMU can only run clusters of one machine", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { version: "6.2.0" });
  expect(await checked(folder.path, "qemu")).toMatchObject({
    status: "warn",
    message: "Version 6.2 can only run single machines: networks between machines need 7.2.",
  });
  const resolve = async (agents: number) => resolveIn(folder.path, { agents });
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
  const resolve = async (cpuModel: string) => resolveIn(folder.path, { cpuModel });
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

test("nodes that need more memory than this computer has are rejected", async () => {
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

test("a QEMU without required features is too old", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, { version: "5.2.0" });
  expect(await checked(folder.path, "qemu")).toMatchObject({
    status: "fail",
    message: "Version 5.2 is too old.",
  });
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

test("features that a build of QEMU lacks are named, and end a creation before it begins", async () => {
  await using folder = await scratchFolder();
  await standIns(folder.path, {});
  expect(await checked(folder.path, "qemu features")).toMatchObject({ status: "pass" });
  await standIns(folder.path, { networks: ["tap", "stream"], hasVvfat: false });
  expect(await checked(folder.path, "qemu features")).toMatchObject({
    status: "fail",
    message: "This QEMU was built without user networks (slirp) and the block driver vvfat.",
  });
  expect(await failureOf(resolveIn(folder.path, {}))).toMatchObject({
    id: "machine-not-set-up",
    message: "This QEMU was built without user networks (slirp) and the block driver vvfat.",
    hint: expect.stringContaining("Install a newer version or another build"),
  });
});
