/** Faults while a cluster of virtual machines is saved as a file, or created from one. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { manifestFor, packMemory, putTogether } from "../../support/rewrite-cluster-file.ts";
import { until } from "../../support/until.ts";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Fault, Struck } from "../fault.ts";
import { interruptWhileWriting } from "../worlds/program-world.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { endedBy, failed, struck } from "./cloud-injections.ts";

type VmFault = Fault<VmWorld>;

/** Made once: it takes this process so long that a row beside it would miss its moment. */
const made: { memory?: Buffer; packed?: Buffer; file?: Buffer } = {};
/** Reading and writing it takes long enough to be interrupted. */
const memory = (): Buffer => (made.memory ??= randomBytes(150_000_000));
const packed = (): Buffer => (made.packed ??= packMemory(memory()));
const noState = Buffer.from("none");
const machines = { accelerator: "tcg", isSandboxed: false, memoryMegabytes: 512, cpus: 1 };
const createdAt = "2026-11-23T12:00:00.000Z";
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The head of a disk that is layered on nothing. */
const disk = Buffer.alloc(4096);
disk.write("QFI\u00fb", "latin1");
disk.writeUInt32BE(3, 4);

const clusterFolder = async ({ stateFolder }: VmWorld): Promise<string> => {
  const root = join(stateFolder, "cluster-e2e", "vm");
  const name = (await readdir(root)).find((each) => /^faulty-[0-9a-f]+$/.test(each));
  return join(root, name!);
};

/** Gives the cluster a snapshot: the stand-in for QEMU saves none. */
async function addSnapshot(world: VmWorld): Promise<Struck> {
  const folder = join(await clusterFolder(world), "snapshots", "installed");
  const files = {
    "master_0/disk.qcow2": disk,
    "master_0/memory": memory(),
    "master_0/state": noState,
  };
  for (const [name, bytes] of Object.entries(files)) await Bun.write(join(folder, name), bytes);
  const sums = Object.entries(files).map(([name, given]) => {
    const bytes = given === made.memory ? packed() : given;
    return [name, { bytes: bytes.length, sha256: sha256(bytes) }];
  });
  const facts = {
    schemaVersion: 1,
    createdAt,
    qemuVersion: "7.2.0",
    machines,
    files: Object.fromEntries(sums),
  };
  await Bun.write(join(folder, "snapshot.json"), JSON.stringify(facts));
  return struck(async () => {});
}

const target = ({ folder }: VmWorld): string => join(folder, "out", "cluster.zst");
const saveWords = (world: VmWorld): readonly string[] => [
  "snapshot",
  "save",
  "installed",
  target(world),
  "-c",
  "faulty",
];

const signalledSave = (signal: "SIGKILL" | "SIGINT"): VmFault => ({
  name: `${signal} while a cluster is saved as a file`,
  place: "computer",
  seconds: 15,
  needsCluster: true,
  strike: addSnapshot,
  act: async (world) => {
    await mkdir(dirname(target(world)));
    const running = world.start(saveWords(world));
    await interruptWhileWriting(target(world), running, signal);
    const ended = await running.ended;
    // What a killed program left is not in the way.
    if (signal === "SIGKILL") await expectSuccess(world, saveWords(world));
    return ended;
  },
  expected: {
    status: signal,
    says: [],
    keepsCluster: true,
    ...(signal === "SIGINT" && { id: "interrupted" }),
  },
});

async function expectSuccess(world: VmWorld, words: readonly string[]): Promise<void> {
  const ended = await world.run(words);
  if (ended.status !== 0) throw new Error(`the next try failed:\n${ended.stderr}`);
}

const fullDisk: VmFault = {
  name: "the disk is full, then a cluster is saved as a file",
  place: "computer",
  seconds: 15,
  lack: process.getuid?.() === 0 ? undefined : "only root mounts file systems",
  needsCluster: true,
  strike: async (world) => {
    await addSnapshot(world);
    const folder = dirname(target(world));
    await mkdir(folder);
    await Bun.$`mount -t tmpfs -o size=20m tmpfs ${folder}`.quiet();
    return struck(async () => {
      await Bun.$`umount ${folder}`.quiet();
      await rm(folder, { recursive: true });
    });
  },
  act: async (world) => world.run(saveWords(world)),
  expected: { ...failed("capacity-lacking", "The disk is full"), keepsCluster: true },
};

/** Writes a file with a cluster of one machine, whose keys nobody accepts. */
async function writeFile(world: VmWorld, lostBytes: number): Promise<string> {
  const bytes = (made.file ??= clusterFile());
  const path = join(world.folder, "given.zst");
  await Bun.write(path, bytes.subarray(0, bytes.length - lostBytes));
  return path;
}

function clusterFile(): Buffer {
  const contents = new Map([
    ["keys.json", Buffer.from("{}")],
    ["master_0/disk.qcow2", disk],
    ["master_0/memory", packed()],
    ["master_0/state", noState],
  ]);
  const facts = {
    clusterId: "first",
    snapshot: "installed",
    createdAt,
    variant: "none",
    distribution: "debian-12",
    counts: { master: 1, agent: 0, public_agent: 0 },
    instanceIds: ["vm-01234567-0"],
    layers: [],
    below: {},
    architecture: process.arch === "x64" ? "x86_64" : "aarch64",
    qemuVersion: "7.2.0",
    cpu: "any",
    machines,
  };
  const manifest = {
    format: "cluster-e2e-cluster",
    formatVersion: 1,
    backend: "vm",
    createdBy: "1",
    facts,
    parts: [],
  };
  return putTogether(manifestFor(manifest, contents), contents.values());
}

const createFrom = (file: string): readonly string[] => ["create", "--from", file, "-c", "faulty"];

const truncated: VmFault = {
  name: "the file of a cluster is truncated",
  place: "computer",
  seconds: 10,
  act: async (world): Promise<Ended> => world.run(createFrom(await writeFile(world, 1_000_000))),
  expected: failed("snapshot-unusable", /given\.zst is (?:incomplete|damaged)/),
};

const signalledUnpacking = (signal: "SIGKILL" | "SIGINT"): VmFault => ({
  name: `${signal} while the file of a cluster is unpacked`,
  place: "computer",
  seconds: 15,
  act: async (world) => {
    const running = world.start(createFrom(await writeFile(world, 0)));
    await until("the memory is unpacked", async () => {
      const names = await readdir(world.stateFolder, { recursive: true }).catch(() => []);
      return names.some((name) => name.endsWith("master_0/memory"));
    });
    running.interrupt(signal);
    return running.ended;
  },
  expected: endedBy(signal),
});

export const fileFaults: readonly VmFault[] = [
  signalledSave("SIGKILL"),
  signalledSave("SIGINT"),
  fullDisk,
  truncated,
  signalledUnpacking("SIGKILL"),
  signalledUnpacking("SIGINT"),
];
