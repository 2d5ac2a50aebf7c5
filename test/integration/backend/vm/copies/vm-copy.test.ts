/** What a copy of a cluster records and reports before its keys are replaced, with real processes in place of QEMU. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { readCluster } from "../../../../../src/backend/vm/cluster-facts.ts";
import { type CopyPlan, VmCopy } from "../../../../../src/backend/vm/copies/vm-copy.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { recordSockets } from "../../../../../src/backend/vm/machines/private-network.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { isAccessible } from "../../../../../src/system/files/private-file.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { machineNodes } from "../../../../support/machine-node.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { startQemuProcess } from "../../../../support/qemu-process.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const creationId = "fedcba9876543210";
const nodes = machineNodes;
const machines = { accelerator: "kvm", isSandboxed: true, memoryMegabytes: 512, cpus: 1 } as const;
const source = {
  schemaVersion: 1,
  clusterId: "source",
  creationId: "0123456789abcdef",
  variant: "oss",
  distribution: "debian-12",
  counts: { master: 1, agent: 1, public_agent: 0 },
  createdAt: "2026-01-01T00:00:00.000Z",
  createdBy: "an earlier version",
  machines: { ...machines, accelerator: "tcg" },
  nodes,
} as const;

/** A copy named `copy`. Its progress keeps the details of `-v`. */
async function openCopy(origin: Partial<CopyPlan["origin"]> = {}) {
  const folder = await scratchFolder();
  const directory = join(folder.path, `copy-${creationId}`);
  await mkdir(directory);
  const plan = {
    qemu: { architecture: architectureOf("x64") } as Qemu,
    root: folder.path,
    request: { clusterId: "copy" },
    origin: {
      facts: source,
      nodes,
      machines,
      whyBoot: undefined,
      qemuVersion: "7.2.22",
      title: "",
      summary: {},
      ...origin,
    },
  } as unknown as CopyPlan;
  const details: string[] = [];
  const detail = (level: number, text: string): void => void (level === 1 && details.push(text));
  const copy = new VmCopy(plan, {
    environment: {},
    clock: systemClock,
    progress: { ...silentProgress, detail },
  });
  return {
    copy,
    details,
    directory,
    claim: async () => copy.claim({ creationId, directory }, neverAborted),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test("a copy has its source's nodes in the same order, with ids and ports of its own", async () => {
  await using opened = await openCopy();
  await opened.claim();
  const { facts } = (await readCluster(opened.directory))!;
  expect(facts).toMatchObject({
    clusterId: "copy",
    creationId,
    distribution: "debian-12",
    machines,
  });
  expect(facts.nodes.map(({ id, role, privateAddress }) => [id, role, privateAddress])).toEqual([
    ["vm-fedcba98-0", "master", "10.93.0.2"],
    ["vm-fedcba98-1", "agent", "10.93.0.3"],
  ]);
  expect(new Set(facts.nodes.flatMap(({ ports }) => Object.values(ports))).size).toBe(6);
  expect((await failureOf(opened.claim())).id).toBe("cluster-exists");
});

test.each([undefined, "their memory was saved on another processor"])(
  "the plan of a copy says what its machines get, and why they boot: %p",
  async (whyBoot) => {
    await using opened = await openCopy({ title: "a snapshot", whyBoot });
    const { lines, facts } = opened.copy.summary;
    expect(Object.fromEntries(lines)).toMatchObject({
      Continues: "a snapshot",
      Engine: "QEMU 7.2.22, kvm",
      Machines: "2: 1 master, 1 agent, 0 public agents",
      "Per machine": "512 MB of memory, 1 CPU",
      "Reached at": "ports of 127.0.0.1",
    });
    expect(Object.fromEntries(lines)["Boots"]).toBe(whyBoot);
    expect(facts).toMatchObject({
      boots: whyBoot !== undefined,
      engine: { name: "qemu", accelerator: "kvm" },
    });
  },
);

test("before the id is claimed, nothing can be left; after that, the command that removes it is known", async () => {
  await using opened = await openCopy();
  expect(opened.copy.remains()).toBeUndefined();
  await opened.claim();
  expect(opened.copy.remains()?.left).toBe(
    "Running virtual machines may be left. Remove them with: cluster-vm destroy --cluster-id copy",
  );
});

test("a machine that runs but still has its source's keys isn't up, because a login would not trust it", async () => {
  await using opened = await openCopy();
  await opened.claim();
  await using processes = new AsyncDisposableStack();
  for (const node of nodes) {
    const files = machineFiles(opened.directory, node);
    await mkdir(files.folder, { recursive: true });
    const child = processes.use(await startQemuProcess(files.pid));
    await writeFile(files.pid, `${child.pid}\n`);
    await writeFile(files.started, "");
  }
  expect((await opened.copy.describe()).nodes.map(({ state }) => state)).toEqual([
    "running",
    "running",
  ]);
  expect((await opened.copy.look()).nodes.map(({ state }) => state)).toEqual([
    "starting",
    "starting",
  ]);
});

test.each(["engine-failed", "machine-failed"] as const)(
  "machines whose memory QEMU can't load boot once, with the reason in the details: %s",
  async (id) => {
    await using opened = await openCopy({ bootAccelerator: () => "tcg" });
    const { copy, directory } = opened;
    await opened.claim();
    const [{ folder }, sockets] = [
      machineFiles(directory, nodes[0]!),
      join(directory, "cluster-e2e-aBcD12"),
    ];
    for (const path of [folder, sockets]) await mkdir(path, { recursive: true, mode: 0o700 });
    await recordSockets(directory, sockets);
    const failure = new ClusterError(id, "QEMU says: Missing section footer.");
    const other = new ClusterError("connection-failed", "No answer.");
    expect(await copy.recover(other, neverAborted)).toBe(false);
    const usualMs = copy.firstLogin.limitMs;
    expect(await copy.recover(failure, neverAborted)).toBe(true);
    expect(opened.details).toEqual([failure.message]);
    for (const path of [folder, sockets]) expect(await isAccessible(path)).toBe(false);
    // They are translated from now on.
    expect(copy.firstLogin.limitMs).toBeGreaterThan(usualMs);
    expect(await copy.recover(failure, neverAborted)).toBe(false);
  },
);

test.each<[string, Partial<CopyPlan["origin"]>]>([
  ["can only continue", {}],
  [
    "boot already",
    { bootAccelerator: () => "tcg", whyBoot: "their memory was saved on another processor" },
  ],
])("machines that %s don't boot after a failure", async (_, origin) => {
  await using opened = await openCopy(origin);
  await opened.claim();
  expect(
    await opened.copy.recover(new ClusterError("engine-failed", "QEMU ended."), neverAborted),
  ).toBe(false);
  expect(opened.details).toEqual([]);
});
