/** Creations from templates, with a stand-in for QEMU. */
import { expect, test } from "bun:test";
import { mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Connection } from "../../../../../src/ssh/connection/connection.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { isAccessible } from "../../../../../src/system/files/private-file.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { until } from "../../../../support/until.ts";
import { key, openBench } from "./templates-bench.ts";

const untilTemplateBoots = async (directory: string): Promise<void> =>
  until("the template boots", async () =>
    isAccessible(join(directory, "machines", "template", "started")),
  );

test("the first creation boots one machine, and all nodes are copies; the next one boots none", async () => {
  await using bench = await openBench();
  const first = await bench.create("one");
  expect(await bench.starts()).toEqual(["boot", "copy", "copy"]);
  expect((await first.look()).nodes.map(({ state }) => state)).toEqual(["running", "running"]);
  await bench.create("two");
  expect((await bench.starts()).slice(3)).toEqual(["copy", "copy"]);
  expect(await bench.templates.list(neverAborted)).toMatchObject([
    { clusters: ["one", "two"], problem: undefined },
  ]);
  expect(bench.notes()).toEqual([]);
  expect(
    (await readdir(bench.at("cache", "cluster-e2e", "templates"))).filter((name) =>
      name.startsWith("."),
    ),
  ).toEqual([]);
});

test("copies of a cluster with a lifetime get its deadline, now and for every later boot", async () => {
  await using bench = await openBench();
  const creation = await bench.claim("one", 10_240, 3_600_000);
  await creation.launch(key, neverAborted);
  const { expiresAt, nodes, directory } = await creation.look();
  const second = expiresAt!.getTime() / 1000;
  expect(second).toBeWithin(Date.now() / 1000 + 3_500, Date.now() / 1000 + 3_600);
  const scripts = await bench.scripts();
  expect(scripts.filter((script) => script.includes(`cluster-e2e-deadline ${second}`)).length).toBe(
    2,
  );
  for (const { role, index } of nodes) {
    const seed = join(directory, "machines", `${role}_${index}`, "seed", "user-data");
    expect(await readFile(seed, "utf8")).toContain(`cluster-e2e-deadline ${second}`);
  }
});

test("each copy gets names, keys and random numbers of its own, and no script is sent twice", async () => {
  await using bench = await openBench();
  const creation = await bench.create("one");
  const scripts = await bench.scripts();
  expect(scripts.length).toBe(2);
  const valueOf = (name: string) =>
    scripts.map((script) => new RegExp(`^${name}='?([^']*)'?$`, "m").exec(script)![1]!);
  for (const name of [
    "ENTROPY",
    "NAME",
    "MACHINE_ID",
    "BOOT_ID",
    "INSTANCE",
    "HOST_KEY",
    "HOST_KEY_PUBLIC",
    "RENAMING",
  ])
    expect(new Set(valueOf(name)).size).toBe(2);
  const { nodes, directory } = await creation.look();
  for (const node of nodes) {
    const { publicKey, isPrivate } = creation.firstLogin.hostKey(node);
    expect(scripts.join("")).toContain(publicKey);
    expect(isPrivate).toBe(true);
    const seed = join(directory, "machines", `${node.role}_${node.index}`, "seed", "user-data");
    expect(await readFile(seed, "utf8")).not.toContain("PRIVATE KEY");
  }
  expect(new Set(valueOf("LOGIN_KEY"))).toEqual(new Set(["ssh-ed25519 AAAA"]));
  // Each knows the names of all.
  for (const { role, privateAddress } of nodes)
    for (const script of scripts) expect(script).toContain(`${privateAddress} ${role}-0`);
});

test("machines pause, continue and shut down when they are told to, and no others do", async () => {
  await using bench = await openBench();
  const creation = await bench.create("one");
  const cluster = await creation.look();
  const [master] = cluster.nodes;
  const states = async () => (await creation.describe()).nodes.map(({ state }) => state);
  await bench.power.pause(cluster, [master!], neverAborted);
  expect(await states()).toEqual(["paused", "running"]);
  await bench.power.resume(cluster, [master!], neverAborted);
  expect(await states()).toEqual(["running", "running"]);
  await bench.power.shutDown(cluster, [master!], neverAborted);
  expect(await states()).toEqual(["stopped", "running"]);
});

test("the power button of a machine that did not notice it, because it boots, is pressed again", async () => {
  const late = { ms: 0 };
  await using bench = await openBench({
    ...systemClock,
    passed: () => Math.round(performance.now()) + late.ms,
  });
  await bench.behave({ ignores: 1 });
  const creation = await bench.create("one");
  const cluster = await creation.look();
  const [master] = cluster.nodes;
  const down = bench.power.shutDown(cluster, [master!], neverAborted);
  await until("it was pressed", async () => Bun.file(bench.at("presses")).exists());
  late.ms = 15_000;
  await down;
  expect((await creation.describe()).nodes.map(({ state }) => state)).toEqual([
    "stopped",
    "running",
  ]);
});

test("two creations at the same time make one template", async () => {
  await using bench = await openBench();
  const both = [await bench.claim("one"), await bench.claim("two")];
  await Promise.all(both.map(async (creation) => creation.launch(key, neverAborted)));
  expect((await bench.starts()).toSorted()).toEqual(["boot", "copy", "copy", "copy", "copy"]);
});

test("an image that can't be copied is booted, which is said once, until the template is removed", async () => {
  await using bench = await openBench();
  await bench.behave({ boot: "unsuitable NetworkManager configures its network" });
  await bench.create("one");
  expect(await bench.starts()).toEqual(["boot", "fresh", "fresh"]);
  expect(bench.notes().join()).toContain("NetworkManager configures its network");
  await bench.create("two");
  expect((await bench.starts()).slice(3)).toEqual(["fresh", "fresh"]);
  expect(bench.notes().length).toBe(1);
  await bench.behave();
  const [name] = await bench.names();
  expect(await bench.templates.remove(name, neverAborted)).toEqual([name!]);
  await bench.create("three");
  expect((await bench.starts()).slice(5)).toEqual(["boot", "copy", "copy"]);
});

test("a template that can't be saved leaves nothing, and the next creation tries again", async () => {
  await using bench = await openBench();
  await bench.behave({ saves: false });
  await bench.create("one");
  expect(await bench.starts()).toEqual(["boot", "fresh", "fresh"]);
  expect(bench.notes().join()).toContain("something odd");
  expect(await bench.names()).toEqual([]);
  expect(await readdir(bench.at("cache", "cluster-e2e", "templates"))).toEqual([]);
  await bench.behave();
  await bench.create("two");
  expect((await bench.starts()).slice(3)).toEqual(["boot", "copy", "copy"]);
});

test("a machine that ends before it has booted makes no template for an hour, and each creation says so", async () => {
  await using bench = await openBench();
  await bench.behave({ boot: "" });
  await bench.create("one");
  await bench.create("two");
  expect(await bench.starts()).toEqual(["boot", "fresh", "fresh", "fresh", "fresh"]);
  expect(bench.notes()).toEqual([
    expect.stringMatching(/^No template can be used \(.* ended.*\): every machine boots/),
    expect.stringMatching(
      /^Every machine boots: .* ended.*\. A template is tried again after \d{4}-/,
    ),
  ]);
  const [name] = await bench.names();
  const path = bench.at("cache", "cluster-e2e", "templates", name!, "template.json");
  const facts = (await Bun.file(path).json()) as {
    readonly createdAt: string;
    readonly problemUntil: string;
  };
  expect(Date.parse(facts.problemUntil) - Date.parse(facts.createdAt)).toBeWithin(
    3_590_000,
    3_610_000,
  );
  await bench.behave();
  await writeFile(path, JSON.stringify({ ...facts, problemUntil: new Date(0).toISOString() }));
  await bench.create("three");
  expect((await bench.starts()).slice(5)).toEqual(["boot", "copy", "copy"]);
});

test("while a cluster needs a template, it stays, even if it is damaged or fails another cluster's machines", async () => {
  await using bench = await openBench();
  await bench.create("one");
  const [name] = await bench.names();
  const second = await bench.create("two");
  expect(
    await second.recover(new ClusterError("machine-failed", "It fell over."), neverAborted),
  ).toBe(true);
  expect(bench.notes()).toEqual(["No template can be used (It fell over): every machine boots."]);
  expect(await bench.templates.list(neverAborted)).toMatchObject([
    { clusters: ["one"], problem: undefined },
  ]);
  await writeFile(bench.at("cache", "cluster-e2e", "templates", name!, "state"), "damaged");
  await bench.create("three");
  expect(bench.notes().at(-1)).toContain(
    `The template ${name} is damaged, and clusters need what is left of it`,
  );
  expect((await bench.starts()).slice(5)).toEqual(["fresh", "fresh"]);
  expect(await bench.names()).toEqual([name!]);
});

test("a cluster that is removed while its template boots leaves nothing, and the next creation makes the template", async () => {
  await using bench = await openBench();
  await bench.behave({ boot: "still booting" });
  const creation = await bench.claim("one");
  const { directory } = await creation.look();
  const failing = failureOf(creation.launch(key, neverAborted));
  await untilTemplateBoots(directory);
  await creation.remove(neverAborted);
  expect(await failing).toMatchObject({ id: "machine-failed", facts: { directory } });
  expect(bench.notes().join()).not.toContain("template");
  expect(await bench.names()).toEqual([]);
  await bench.behave();
  await bench.create("two");
  expect((await bench.starts()).slice(1)).toEqual(["boot", "copy", "copy"]);
});

test("a template whose QEMU is killed leaves nothing, and the next creation tries again", async () => {
  await using bench = await openBench();
  await bench.behave({ boot: "still booting" });
  const creation = await bench.claim("one");
  const { directory } = await creation.look();
  const launching = creation.launch(key, neverAborted);
  await untilTemplateBoots(directory);
  process.kill(
    Number(await readFile(join(directory, "machines", "template", "qemu.pid"), "utf8")),
    "SIGKILL",
  );
  await launching;
  expect(await bench.starts()).toEqual(["boot", "fresh", "fresh"]);
  expect(bench.notes().join()).toContain("its QEMU was killed, perhaps because memory ran out");
  expect(await bench.names()).toEqual([]);
});

test("machines that don't become nodes are ended, and all boot instead", async () => {
  await using bench = await openBench();
  await bench.behave({ copy: "failed eth0 has no address" });
  const creation = await bench.claim("one");
  const failure = await failureOf(creation.launch(key, neverAborted));
  expect(failure.id).toBe("machine-failed");
  expect(await creation.recover(failure, neverAborted)).toBe(true);
  await creation.launch(key, neverAborted);
  expect((await bench.starts()).slice(-2)).toEqual(["fresh", "fresh"]);
  const { nodes } = await creation.look();
  expect(nodes.map(({ state }) => state)).toEqual(["running", "running"]);
  // It is in the seeds of machines that boot.
  expect(nodes.map((node) => creation.firstLogin.hostKey(node).isPrivate)).toEqual([false, false]);
  expect(bench.notes().join()).toContain("eth0 has no address");
  expect(await bench.templates.list(neverAborted)).toMatchObject([
    { clusters: [], problem: expect.stringContaining("eth0") },
  ]);
});

test("a full disk is no fault of the template, and neither is what happens after a copy has become a node", async () => {
  await using bench = await openBench();
  const creation = await bench.create("one");
  const full = new ClusterError("capacity-lacking", "The disk is full.");
  expect(await creation.recover(full, neverAborted)).toBe(false);
  const [first] = (await creation.look()).nodes;
  await creation.firstLogin.finishBoot(first!, { run: runOnNode }, neverAborted);
  expect(
    await creation.recover(new ClusterError("machine-failed", "It ended."), neverAborted),
  ).toBe(false);
  expect(await bench.templates.list(neverAborted)).toMatchObject([
    { clusters: ["one"], problem: undefined },
  ]);
});

test("a creation that cannot write its files, as on a full disk, does not blame the template", async () => {
  await using bench = await openBench();
  const first = await bench.create("one");
  await first.stop(neverAborted);
  await first.remove(neverAborted);
  const second = await bench.claim("two");
  const directory = bench.at("vm", "two-0123456789abcde1");
  await mkdir(join(directory, "machines"), { recursive: true });
  await writeFile(join(directory, "machines", "master_0"), "");
  const failure = await failureOf(second.launch(key, neverAborted));
  expect(failure.message).toContain("EEXIST");
  expect(await second.recover(failure, neverAborted)).toBe(false);
  const broken = new ClusterError("machine-not-set-up", "Cannot create a pipe.");
  expect(await second.recover(broken, neverAborted)).toBe(false);
  expect(await bench.templates.list(neverAborted)).toMatchObject([
    { clusters: ["two"], problem: undefined },
  ]);
});

test.each(["memory", "state"])("a template whose %s is damaged is made again", async (file) => {
  await using bench = await openBench();
  const creation = await bench.create("one");
  await creation.stop(neverAborted);
  await creation.remove(neverAborted);
  const [name] = await bench.names();
  await writeFile(bench.at("cache", "cluster-e2e", "templates", name!, file), "damaged");
  await bench.create("two");
  expect((await bench.starts()).slice(3)).toEqual(["boot", "copy", "copy"]);
});

test("another QEMU and another image get a template of their own", async () => {
  await using bench = await openBench();
  await bench.create("one");
  await bench.behave({ version: "8.2.1" });
  await bench.create("two");
  await utimes(bench.at("image.raw"), 1, 1);
  await bench.create("three");
  expect((await bench.starts()).filter((start) => start === "boot").length).toBe(3);
  expect((await bench.names()).length).toBe(3);
});

/** A node whose clock is right, and whose first boot is over. */
const runOnNode: Connection["run"] = async ({ stdin, onOutput }) => {
  if (stdin !== undefined && typeof stdin === "object" && Symbol.asyncIterator in stdin)
    for await (const _ of stdin) await onOutput?.("stdout", `${Date.now() / 1000}\n`);
  return { status: 0, stdout: "", stderr: "" };
};
