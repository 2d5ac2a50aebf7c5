/** Faults that only machines with disks and memory of their own can have: a disk that is slow or fails, and a power cut. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestVms, buildVmImage, startTestVms } from "./support/test-vms.ts";

const state: { vms?: TestVms } = {};
const vms = (): TestVms => state.vms!;
const id = (): string => vms().id("chaos");
const succeed = async (...words: readonly string[]) => {
  const ended = await vms().run(words);
  expect(ended.status, ended.stdout + ended.stderr).toBe(0);
  return ended;
};
const onNode = (...words: readonly string[]) =>
  succeed("run", "-c", id(), "--no-test-env", ...words);
const fault = (line: string) => vms().run(["fault", ...line.split(" "), "-c", id()]);

/** A device of device mapper in a file, with a file system that no program of the node writes to or syncs. */
const mountData =
  'modprobe loop && dmsetup create data --table "0 131072 linear $(losetup --find --show /var/lib/data) 0" && mount /dev/mapper/data /data';

beforeAll(async () => {
  state.vms = await startTestVms();
  const machines = "--masters 1 --memory 768 --cpus 1 --disk-size 4g".split(" ");
  const image = ["--image", await buildVmImage()];
  await succeed("create", "--wait", "-c", id(), ...machines, ...image, "example:bare");
  await onNode("truncate --size 64M /var/lib/data && mkfs.ext4 -q /var/lib/data && mkdir /data");
  await onNode(mountData);
});

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
});

test("the device below a folder is slow, fails or stalls, and works again when the fault heals", async () => {
  const slow = await fault("io master_0 --folder /data --slow 400ms --for 30m");
  expect(slow).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/: a read takes \d+\.\d ms, before/),
  });
  expect(await fault("io master_0 --folder /data --stall")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("has a fault already"),
  });
  expect(await fault("heal")).toMatchObject({ stdout: slow.stdout });
  expect(await fault("io master_0 --folder /data --errors 50% --for 30m")).toMatchObject({
    status: 0,
    stderr: expect.stringContaining(": a read fails, before: a read takes"),
  });
  await fault("heal");
  expect(await fault("io master_0 --folder /data --stall --for 30m")).toMatchObject({
    status: 0,
    stderr: expect.stringContaining(": a read does not end, before: a read takes"),
  });
  await fault("heal");
  await onNode("dmsetup table data | grep linear && dd if=/dev/mapper/data of=/dev/null count=1");
  expect((await onNode("ls /run/cluster-e2e-faults | grep -v healed | wc -l")).stdout).toBe("0\n");
  expect(await fault("io master_0 --folder /var/lib --stall")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("is not on a device of device mapper"),
  });
});

test("a power cut restarts the node with what was synced, and without what was not", async () => {
  await onNode("sysctl vm.dirty_writeback_centisecs=0 vm.dirty_expire_centisecs=360000");
  await onNode("cd /data && echo synced >synced && echo old >overwritten && sync");
  const unsynced = "printf new | dd of=overwritten conv=notrunc 2>/dev/null; echo lost >created";
  const read = "cat synced overwritten created 2>/dev/null || :";
  const written = await onNode(`cd /data; ${unsynced}; sync synced; ${read}`);
  expect(written.stdout).toBe("synced\nnew\nlost\n");
  expect(await fault("power master_0 --for 1s --wait")).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("it booted again on 1 node"),
  });
  await onNode(mountData);
  expect((await onNode(`cd /data; ${read}`)).stdout).toBe("synced\nold\n");
});
