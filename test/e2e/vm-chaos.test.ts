/**
 * Faults that only machines with disks and memory of their own can have: a disk that stalls, is slow or fails, and a power
 * cut. With the latter, random faults find an etcd that acknowledges what it has not written to its disk.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { type TestVms, buildVmImage, startTestVms } from "./support/test-vms.ts";

const state: { vms?: TestVms } = {};
const vms = (): TestVms => state.vms!;
const id = (): string => vms().id("chaos");
const saved = (): string => join(vms().folder, "careless.zst");
const succeed = async (...words: readonly string[]) => {
  const ended = await vms().run(words);
  expect(ended.status, ended.stdout + ended.stderr).toBe(0);
  return ended;
};
const onNode = (...words: readonly string[]) =>
  succeed("run", "-c", id(), "--no-test-env", ...words);
const fault = (line: string) => vms().run(["fault", ...line.split(" "), "-c", id()]);

beforeAll(async () => {
  state.vms = await startTestVms();
  const platform = join(vms().folder, "careless");
  await cp(join(repository, "src/platform/examples/etcd"), platform, { recursive: true });
  const install = join(platform, "install");
  const text = await readFile(install, "utf8");
  const planted = text.replace(/^ETCD_NAME=/m, "ETCD_UNSAFE_NO_FSYNC=true\n$&");
  expect(planted).not.toBe(text);
  await writeFile(install, planted, { mode: 0o755 });
  const machines = "--masters 1 --memory 768 --cpus 1 --disk-size 4g".split(" ");
  const image = ["--image", await buildVmImage()];
  await succeed("create", "--wait", "-c", id(), ...machines, ...image, platform);
  await succeed("snapshot", "create", "ready", "-c", id());
  await succeed("snapshot", "save", "ready", saved(), "-c", id());
});

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
});

test("the device below a folder is slow, fails or stalls, and works again when the fault heals", async () => {
  await onNode(
    'truncate --size 64M /var/lib/data && dmsetup create data --table "0 131072 linear $(losetup --find --show /var/lib/data) 0"',
  );
  await onNode("mkfs.ext4 -q /dev/mapper/data && mkdir /data && mount /dev/mapper/data /data");
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
  expect(await fault("io master_0 --folder /data --stall --for 5s --wait")).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/: a read does not end, before[^]*Healed[^]*a read takes/),
  });
  await onNode("dmsetup table data | grep linear && dd if=/dev/mapper/data of=/dev/null count=1");
  expect((await onNode("ls /run/cluster-e2e-faults | grep -v healed | wc -l")).stdout).toBe("0\n");
  expect(await fault("io master_0 --folder /var/lib --stall")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("is not on a device of device mapper"),
  });
});

test("a power cut restarts the node without what was only in its memory", async () => {
  await onNode("echo kept >/root/kept && sync && echo lost >/root/lost");
  expect(await fault("power master_0 --for 1s --wait")).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("it booted again on 1 node"),
  });
  expect((await onNode("cat /root/kept; cat /root/lost 2>/dev/null || :")).stdout).toBe("kept\n");
  await succeed("destroy", "-c", id());
});

test("random faults find lost writes, and shrinking names the power cut alone", async () => {
  const chaos = "seed=1,every=30s,kinds=process,power,targets=majority,unit=etcd,signal=kill";
  const words = ["--from", saved(), "--local", "--chaos", chaos, "--shrink", "5"];
  const script = join(import.meta.dir, "lost-writes.sh");
  const ended = await vms().run(["once", "-c", id(), ...words, "--", script, "300"]);
  expect(ended.status, ended.stdout + ended.stderr).toBe(1);
  expect(ended.stdout).toContain("of 300 acknowledged writes are lost");
  const [, only] =
    /smallest plan that still fails has 1 fault of.*,only=(\d+)\n/.exec(
      ended.stderr.replaceAll(/\n +/g, " "),
    ) ?? [];
  expect(ended.stderr).toContain(`Fault ${only}. `);
  expect(ended.stderr).toMatch(new RegExp(`Fault ${only}\\. after [^:]*: power on master_0`));
});
