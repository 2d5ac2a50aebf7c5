/** Virtual machines on the QEMU of Debian 13, and clusters that move as files between it and this machine's own QEMU. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { expectDifferentCopies, expectOtherUuids, onNodes } from "./support/copies.ts";
import { writeEmptyPlatform } from "./support/empty-platform.ts";
import { buildVmImage, newerQemu, startTestVms, type TestVms } from "./support/test-vms.ts";

interface State {
  readonly vms: TestVms;
  readonly create: readonly string[];
  readonly newer: string;
}
const state: { current?: State } = {};
const vms = (): TestVms => state.current!.vms;

/** The same clusters, with the QEMU of Debian 13. */
const newer = (): TestVms => ({
  ...vms(),
  run: (words) =>
    vms().run(words, {
      environment: { PATH: `${state.current!.newer}:${process.env["PATH"] ?? ""}` },
    }),
});

/** This machine's own QEMU, and that of Debian 13. */
const versions = async (): Promise<readonly [own: string, other: string]> => {
  const programs = ["qemu-system-x86_64", join(state.current!.newer, "qemu-system-x86_64")];
  const texts = await Promise.all(
    programs.map(async (program) => Bun.$`${program} --version`.text()),
  );
  const [own, other] = texts.map((text) => /version (\d+\.\d+\.\d+)/.exec(text)![1]!);
  return [own!, other!];
};
/** The form of saved memory changes with the first two numbers. */
const release = (version: string): string => version.split(".").slice(0, 2).join(".");

const done = async (on: TestVms, ...words: readonly string[]): Promise<string> => {
  const ran = await on.run(words);
  expect(ran.status, ran.stderr).toBe(0);
  return ran.stderr;
};

beforeAll(async () => {
  const own = await startTestVms();
  const image = await buildVmImage("--networkd");
  const machines =
    "--masters 1 --public-agents 0 --memory 768 --cpus 1 --disk-size 4g --image".split(" ");
  const create = [...machines, image, await writeEmptyPlatform(own.folder)];
  state.current = { vms: own, create, newer: await newerQemu() };
});

afterAll(async () => {
  await state.current?.vms[Symbol.asyncDispose]();
});

test("on the QEMU of Debian 13, a cluster of copies lives, with snapshots and copies of them", async () => {
  const [id, copy] = [vms().id("ten"), vms().id("ten-copy")];
  const doctor = await newer().run(["doctor", "--output", "json"]);
  const { checks } = JSON.parse(doctor.stdout) as {
    readonly checks: readonly { readonly status: string }[];
  };
  expect(checks.filter(({ status }) => status === "fail")).toEqual([]);
  const created = await done(
    newer(),
    "create",
    "--wait",
    "-c",
    id,
    "--agents",
    "1",
    ...state.current!.create,
  );
  expect(created).toContain("Make a template of the machines: done");
  const peer = `ping -c 1 -W 20 "$([ "$(hostname)" = master-0 ] && echo agent-0 || echo master-0)" >/dev/null && hostname`;
  const hostnames = { master_0: "master-0", agent_0: "agent-0" };
  expect(await onNodes(newer(), id, peer)).toEqual(hostnames);
  await expectDifferentCopies(newer(), id);
  await done(newer(), "snapshot", "create", "-c", id, "made");
  await done(newer(), "snapshot", "restore", "-c", id, "made");
  await expectOtherUuids(newer(), id, "made");
  expect(await onNodes(newer(), id, peer)).toEqual(hostnames);
  await done(newer(), "create", "--wait", "-c", copy, "--from", `${id}:made`);
  expect(await onNodes(newer(), copy, peer)).toEqual(hostnames);
  await done(newer(), "destroy", "-c", copy);
  await done(newer(), "destroy", "--yes", "-c", id);
});

test("a cluster's file from either QEMU becomes a cluster on the other", async () => {
  const [first, second, third] = ["first", "second", "third"].map((name) => vms().id(name));
  const note = (text: string) => `echo ${text} | sudo tee -a /var/lib/note >/dev/null && sync`;
  const file = (name: string) => join(vms().folder, `${name}.zst`);
  const saved = async (on: TestVms, id: string, text: string): Promise<string> => {
    await onNodes(on, id, note(text));
    await done(on, "snapshot", "create", "-c", id, "made");
    await done(on, "snapshot", "save", "-c", id, "made", file(text));
    await done(on, "destroy", "--yes", "-c", id);
    return file(text);
  };
  const continued = async (on: TestVms, id: string, from: string): Promise<string> =>
    await done(on, "create", "--wait", "-c", id, "--from", from);
  await done(newer(), "create", "--wait", "-c", first!, "--agents", "0", ...state.current!.create);
  const fromNewer = await saved(newer(), first!, "newer");
  const onOwn = await continued(vms(), second!, fromNewer);
  expect(await onNodes(vms(), second!, "cat /var/lib/note")).toEqual({ master_0: "newer" });
  const fromOwn = await saved(vms(), second!, "own");
  const onNewer = await continued(newer(), third!, fromOwn);
  expect(await onNodes(newer(), third!, "cat /var/lib/note")).toEqual({ master_0: "newer\nown" });
  const [own, other] = await versions();
  if (release(own) !== release(other)) {
    const boots = (before: string, here: string) =>
      `The nodes boot from their disks: QEMU ${before} saved their memory, and this computer has ${here}.`;
    expect(onOwn).toContain(boots(other, own));
    expect(onNewer).toContain(boots(own, other));
  }
  await done(newer(), "destroy", "-c", third!);
});
