import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type NodeFacts, readCluster } from "../../../../../src/backend/vm/cluster-facts.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { startMachines, type StartPlan } from "../../../../../src/backend/vm/machines/launch.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { isAccessible } from "../../../../../src/system/files/private-file.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { rejectionOf } from "../../../../support/failure-of.ts";
import { machineNode } from "../../../../support/machine-node.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";
const node = machineNode();

const known = {
  variant: "oss",
  distribution: "debian-12",
  createdAt: undefined,
  createdBy: "test",
} as const;

/** How machines of a cluster in this folder are started. */
const planOf = (directory: string, nodes: readonly NodeFacts[]): StartPlan => ({
  directory,
  facts: {
    clusterId: "one",
    creationId,
    ...known,
    counts: { master: nodes.length, agent: 0, public_agent: 0 },
    nodes,
  },
  options: { memoryMegabytes: 256, cpus: 1 },
  accelerator: "tcg",
  isSandboxed: false,
  sockets: { folder: directory, count: nodes.length },
  isOfTemplate: false,
  clock: systemClock,
});

const sshPort = /hostfwd=tcp:127\.0\.0\.1:(\d+)-:22\b/;

interface Given {
  /** What QEMU writes to its log. */
  readonly log?: string;
  readonly memoryOf?: StartPlan["memoryOf"];
}

/** Starts a machine with a QEMU that says this at its first starts, in turn. Returns the error, and the ports of each start. */
async function start(said: readonly string[], { log = "", memoryOf }: Given = {}) {
  await using folder = await scratchFolder();
  const directory = join(folder.path, `one-${creationId}`);
  await mkdir(machineFiles(directory, node).folder, { recursive: true });
  const ports: (string | undefined)[] = [];
  const lines: string[] = [];
  const files = machineFiles(directory, node);
  await writeFile(files.qemuLog, log);
  const run = async ({ words }: { readonly words: readonly string[] }) => {
    lines.push(words.join(" "));
    const message = said[ports.length];
    ports.push(sshPort.exec(words.join(" "))?.[1]);
    return Promise.resolve({
      status: message === undefined ? 0 : 1,
      stdout: "",
      stderr: message ?? "",
    });
  };
  const qemu = {
    architecture: architectureOf("x64"),
    systemName: "qemu-system-x86_64",
    run,
  } as unknown as Qemu;
  const plan = {
    ...planOf(directory, [node]),
    ...(memoryOf !== undefined && { memoryOf }),
  };
  const failure = await rejectionOf(startMachines(qemu, plan, {}, neverAborted));
  const isStarted = await isAccessible(files.started);
  return {
    failure,
    ports,
    lines,
    isStarted,
    recorded: (await readCluster(directory))?.facts.nodes[0]?.ports.ssh,
  };
}

const taken =
  "qemu-system-x86_64: -netdev user: Could not set up host forwarding rule 'tcp:127.0.0.1:4000-:22'";

test("a machine whose ports are taken gets others, which are recorded before it starts", async () => {
  const { failure, ports, recorded } = await start([taken, taken]);
  expect([failure, ports.length, new Set(ports).size]).toEqual([undefined, 3, 3]);
  expect(String(recorded)).toBe(ports[2]!);
});

test("the new ports of machines that change them at the same moment are all recorded", async () => {
  await using folder = await scratchFolder();
  const directory = join(folder.path, `one-${creationId}`);
  const nodes = Array.from({ length: 12 }, (_, index) =>
    machineNode({
      id: `vm-01234567-${index}`,
      index,
      ports: { ssh: 4000 + 3 * index, http: 4001 + 3 * index, https: 4002 + 3 * index },
    }),
  );
  for (const each of nodes) await mkdir(machineFiles(directory, each).folder, { recursive: true });
  const starts = new Map<string, number>();
  const unrecorded: string[] = [];
  const run = async ({ words }: { readonly words: readonly string[] }) => {
    const name = words[words.indexOf("-name") + 1]!;
    const tries = (starts.get(name) ?? 0) + 1;
    starts.set(name, tries);
    const port = Number(sshPort.exec(words.join(" "))![1]);
    const facts = (await readCluster(directory))?.facts;
    const isRecorded = facts?.nodes.some(({ id, ports }) => id === name && ports.ssh === port);
    if (tries > 1 && isRecorded !== true) unrecorded.push(name);
    return { status: tries < 5 ? 1 : 0, stdout: "", stderr: tries < 5 ? taken : "" };
  };
  const qemu = {
    architecture: architectureOf("x64"),
    systemName: "qemu-system-x86_64",
    run,
  } as unknown as Qemu;
  const again = { places: nodes.map((_, place) => place), hasNetwork: true };
  await startMachines(qemu, { ...planOf(directory, nodes), again }, {}, neverAborted);
  expect(unrecorded).toEqual([]);
});

test("a machine whose ports are always taken is given up at the fifth start", async () => {
  const { failure, ports } = await start(Array.from({ length: 9 }, () => taken));
  expect(failure).toMatchObject({
    id: "engine-failed",
    message: expect.stringContaining("host forwarding rule"),
  });
  expect(ports).toHaveLength(5);
});

test("a machine that fails to start for another reason is not started again", async () => {
  const { failure, ports, isStarted } = await start(["qemu-system-x86_64: no such disk", taken]);
  expect(isStarted).toBe(false);
  expect(failure).toMatchObject({
    message: "qemu-system-x86_64 for master_0 failed: no such disk.",
  });
  expect(ports).toEqual(["4000"]);
});

test("what a QEMU that doesn't start wrote to its log is quoted", async () => {
  const { failure } = await start([""], { log: "qemu-system-x86_64: no accelerator found\n" });
  expect(failure).toMatchObject({
    message: "qemu-system-x86_64 for master_0 failed: no accelerator found.",
  });
});

test("a machine with saved memory waits for its state, and any other boots", async () => {
  const continued = await start([], { memoryOf: ({ id }) => `/saved/${id}` });
  expect([continued.failure, continued.isStarted]).toEqual([undefined, true]);
  expect(continued.lines[0]).toContain(`mem-path=/saved/${node.id},share=off -incoming defer`);
  expect((await start([])).lines[0]).not.toContain("-incoming");
});
