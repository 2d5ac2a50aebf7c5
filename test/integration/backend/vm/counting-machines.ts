/** A cluster of two real QEMUs, connected like ours, that boot a program of a few bytes. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type StoredCluster, writeClusterFacts } from "../../../../src/backend/vm/cluster-facts.ts";
import {
  findFreePorts,
  startMachines,
  toPorts,
} from "../../../../src/backend/vm/machines/launch.ts";
import {
  allProcessFiles,
  endMachines,
  machineFiles,
} from "../../../../src/backend/vm/machines/machine-process.ts";
import {
  makeSocketsFolder,
  removeSockets,
} from "../../../../src/backend/vm/machines/private-network.ts";
import { hostArchitecture } from "../../../../src/backend/vm/qemu/architecture.ts";
import { runOnMonitor } from "../../../../src/backend/vm/qemu/monitor.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { type Runtime, systemClock } from "../../../../src/system/runtime.ts";
import { wireKey } from "../../../support/ssh-options.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** Why this computer can't run these machines; undefined if it can. */
export const qemuLack =
  process.arch === "x64" && Bun.which("qemu-system-x86_64") !== null
    ? undefined
    : "no QEMU for this processor here";

/** xor ax, ax; mov ds, ax; sti; then, 18 times a second: hlt; inc dword [0x1000]; jmp back. */
const counting = [0x31, 0xc0, 0x8e, 0xd8, 0xfb, 0xf4, 0x66, 0xff, 0x06, 0x00, 0x10, 0xeb, 0xf8];
const bootSignature = [0x55, 0xaa];

const settings = {
  accelerator: "tcg",
  isSandboxed: false,
  memoryMegabytes: 32,
  cpus: 1,
  cpuModel: "Nehalem",
} as const;

/** The cluster `counting`, in the state folder `state` of this folder. */
export async function startCountingMachines(
  folder: string,
  runtime: Runtime,
): Promise<StoredCluster> {
  const directory = join(folder, "state", "cluster-e2e", "vm", "counting-0123456789abcdef");
  const facts = await writeFacts(directory);
  const image = join(folder, "image.raw");
  const disk = new Uint8Array(1024 * 1024);
  disk.set(counting);
  disk.set(bootSignature, 510);
  await writeFile(image, disk);
  for (const node of facts.nodes) {
    const files = machineFiles(directory, node);
    await mkdir(files.seed, { recursive: true });
    await Bun.$`qemu-img create -q -f qcow2 -b ${image} -F raw ${files.disk}`.quiet();
  }
  const sockets = { folder: await makeSocketsFolder(directory), count: facts.nodes.length };
  const qemu = openQemu(runtime, hostArchitecture());
  const plan = {
    directory,
    facts,
    options: settings,
    ...settings,
    sockets,
    clock: systemClock,
    isOfTemplate: false,
  };
  try {
    await startMachines(qemu, plan, {}, neverAborted);
  } catch (error) {
    await endCountingMachines({ directory });
    throw error;
  }
  return { directory, facts };
}

/** Ends its machines as they are. */
export async function endCountingMachines({
  directory,
}: Pick<StoredCluster, "directory">): Promise<void> {
  await endMachines(await allProcessFiles(directory), systemClock, neverAborted);
  await removeSockets(directory);
}

/** Gives the cluster keys that nobody accepts. */
export async function pinKeys({ directory, facts }: StoredCluster): Promise<void> {
  const files = creationFiles(directory);
  await writeFile(files.privateKey, generateKeyPair("source").privateKey, { mode: 0o600 });
  const knownHosts = createKnownHosts(files.knownHosts);
  for (const { ports } of facts.nodes)
    await knownHosts.pin("127.0.0.1", ports.ssh, wireKey(generateKeyPair("host").publicKey));
}

/** The current count of the machine in this folder. */
export async function readCount(folder: string): Promise<number> {
  const command = {
    execute: "human-monitor-command",
    arguments: { "command-line": "xp /1dw 0x1000" },
  };
  const [text] = await runOnMonitor(folder, [command], neverAborted);
  return Number(/:\s+(\d+)/.exec(String(text))?.[1]);
}

async function writeFacts(directory: string): Promise<StoredCluster["facts"]> {
  const ports = await findFreePorts(6);
  const node = (role: "master" | "agent", place: number) => ({
    id: `vm-01234567-${place}`,
    role,
    index: 0,
    privateAddress: `10.93.0.${place + 2}`,
    ports: toPorts(ports.slice(3 * place)),
  });
  const facts = {
    schemaVersion: 1,
    clusterId: "counting",
    creationId: "0123456789abcdef",
    variant: "oss",
    distribution: "own image",
    counts: { master: 1, agent: 1, public_agent: 0 },
    createdAt: new Date().toISOString(),
    createdBy: "test",
    machines: settings,
    nodes: [node("master", 0), node("agent", 1)],
  } as const;
  await mkdir(directory, { recursive: true });
  await writeClusterFacts(directory, facts);
  return facts;
}
