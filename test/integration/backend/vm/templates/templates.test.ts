/** Creations from templates, with a stand-in for QEMU. */
import { expect, test } from "bun:test";
import { chmod, mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { vmPower } from "../../../../../src/backend/vm/vm-power.ts";
import { vmTemplates } from "../../../../../src/backend/vm/templates/vm-templates.ts";
import { VmCreation } from "../../../../../src/backend/vm/vm-creation.ts";
import type { Connection } from "../../../../../src/ssh/connection/connection.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { silentProgress, systemClock } from "../../../../../src/system/runtime.ts";
import { isAccessible } from "../../../../../src/system/files/private-file.ts";
import { bootableDisk } from "../../../../support/bootable-disk.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";
import type { Behaviour } from "./qemu-stand-in.ts";

const image = `
case $1 in
  info) echo '{"format": "raw", "virtual-size": 1048576}' ;;
  create) for word; do path=$disk; disk=$word; done; : >"$path" ;;
esac
`;
const usual: Behaviour = { version: "7.2.22", boot: "ready", copy: "done", saves: true };
const key = "ssh-ed25519 AAAA own";

async function openBench() {
  const folder = await scratchFolder();
  const at = (...names: readonly string[]): string => join(folder.path, ...names);
  const standIn = join(import.meta.dir, "qemu-stand-in.ts");
  for (const [name, text] of [
    ["qemu-system-x86_64", `exec '${process.execPath}' '${standIn}' '${folder.path}' "$@"`],
    ["qemu-img", image],
  ] as const) {
    await writeFile(at(name), `#!/bin/sh\n${text}\n`);
    await chmod(at(name), 0o755);
  }
  await writeFile(at("image.raw"), bootableDisk());
  const notes: string[] = [];
  const runtime = {
    environment: { PATH: `${folder.path}:/bin:/usr/bin`, XDG_CACHE_HOME: at("cache") },
    clock: systemClock,
    progress: { ...silentProgress, note: (text: string) => void notes.push(unmarked(text)) },
  };
  const behave = async (more: Partial<Behaviour> = {}) =>
    writeFile(at("behaviour.json"), JSON.stringify({ ...usual, ...more }));
  await behave();
  const qemu = openQemu(runtime, architectureOf("x64"));
  const creations: VmCreation[] = [];
  const claim = async (
    id: string,
    mostMegabytes = 10_240,
    lifetimeMs?: number,
  ): Promise<VmCreation> => {
    const directory = at("vm", `${id}-0123456789abcde${creations.length}`);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const request = {
      clusterId: id,
      variant: "oss",
      distribution: "debian-12",
      counts: { master: 1, agent: 1, public_agent: 0 },
      options: { memoryMegabytes: 256, cpus: 1, diskMegabytes: 1024, templates: { mostMegabytes } },
      needsCgroups1: false,
      needsApt: false,
      imagePreparation: undefined,
      openPorts: [],
      webUi: undefined,
      lifetimeMs,
    } as const;
    const resolved = {
      qemuVersion: "7.2",
      accelerator: "tcg",
      choice: { forced: undefined, broken: undefined },
      isSandboxed: false,
      firmware: undefined,
      image: { name: "image", path: at("image.raw") },
    } as const;
    const creation = new VmCreation({ qemu, root: at("vm"), request, resolved }, runtime);
    await creation.claim(
      { creationId: `0123456789abcde${creations.length}`, directory },
      neverAborted,
    );
    creations.push(creation);
    return creation;
  };
  const templates = vmTemplates(runtime);
  const lines = async (name: string, end: string) =>
    (await readFile(at(name), "utf8").catch(() => "")).split(end).slice(0, -1);
  return {
    at,
    notes: () => notes.filter((note) => !note.includes("under tcg")),
    behave,
    power: vmPower(qemu, runtime),
    claim,
    create: async (id: string) => {
      const creation = await claim(id);
      await creation.launch(key, neverAborted);
      return creation;
    },
    templates,
    names: async () => (await templates.list(neverAborted)).map(({ name }) => name),
    /** How the machines were started: `boot` for those of a template, `copy`, or `fresh`. */
    starts: async () =>
      (await lines("started", "\n")).map((each) =>
        each.includes("share=on") ? "boot" : each.includes("share=off") ? "copy" : "fresh",
      ),
    scripts: async () => lines("scripts", "\n--end--\n"),
    [Symbol.asyncDispose]: async () => {
      for (const creation of creations) await creation.stop(neverAborted);
      for (const creation of creations) await creation.remove(neverAborted);
      await folder[Symbol.asyncDispose]();
    },
  };
}

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
