/** A file with a cluster of one virtual machine, made without one. */
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { nodeParts } from "../../src/backend/vm/files/file-facts.ts";
import { resolveFile } from "../../src/backend/vm/files/resolve-file.ts";
import { hostArchitecture } from "../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../src/backend/vm/qemu/qemu.ts";
import type { ClusterFileReference } from "../../src/model/snapshot.ts";
import { generateKeyPair } from "../../src/ssh/keys.ts";
import { type Runtime, systemClock } from "../../src/system/runtime.ts";
import { silentProgress } from "./silent-progress.ts";
import { neverAborted } from "./never-aborted.ts";
import { manifestFor, packMemory, putTogether, sha256 } from "./rewrite-cluster-file.ts";
import { wireKey } from "./ssh-options.ts";

export type Facts = Record<string, unknown>;
export interface ExampleFile {
  readonly manifest: {
    readonly parts: readonly { name: string; bytes: number; sha256: string }[];
    facts: Facts;
  };
  readonly contents: Map<string, Buffer>;
  readonly bytes: Buffer;
}

/** Makes a qcow2 disk; `PATH` stands for its path. */
export async function makeDisk(folder: string, words: readonly string[]): Promise<Buffer> {
  const path = join(folder, "made.qcow2");
  await Bun.$`rm -f ${path}; qemu-img create -q -f qcow2 ${words.map((word) => word.replace("PATH", path))}`;
  return readFile(path);
}

/** A cluster of one node, whose disk is layered on an image of zeros. */
export async function exampleClusterFile(folder: string): Promise<ExampleFile> {
  const base = Buffer.alloc(1024 * 1024);
  await writeFile(join(folder, "base.raw"), base);
  const disk = await makeDisk(folder, ["-b", join(folder, "base.raw"), "-F", "raw", "PATH", "2M"]);
  const keys = {
    privateKey: generateKeyPair("").privateKey,
    hostKeys: [wireKey(generateKeyPair("").publicKey).toString("base64")],
  };
  const contents = new Map([
    ["keys.json", Buffer.from(JSON.stringify(keys))],
    ["layer-0", base],
    ["master_0/disk.qcow2", disk],
    ["master_0/memory", packMemory(Buffer.from("memory"))],
    ["master_0/state", Buffer.from("state")],
  ]);
  const facts = {
    clusterId: "first",
    snapshot: "installed",
    createdAt: "2026-11-23T12:00:00.000Z",
    variant: "none",
    distribution: "debian-12",
    counts: { master: 1, agent: 0, public_agent: 0 },
    architecture: process.arch === "x64" ? "x86_64" : "aarch64",
    qemuVersion: "7.2.22",
    cpu: "any",
    machines: { accelerator: "tcg", isSandboxed: false, memoryMegabytes: 32, cpus: 1 },
    instanceIds: ["vm-01234567-0"],
    layers: [{ format: "raw", bytes: base.length, sha256: sha256(base) }],
    below: { "master_0/disk.qcow2": 0 },
  };
  const manifest = {
    format: "cluster-e2e-cluster",
    formatVersion: 1,
    backend: "vm",
    createdBy: "1",
    facts,
    parts: [],
  };
  const full = { ...manifestFor(manifest, contents), facts };
  return { manifest: full, contents, bytes: putTogether(full, contents.values()) };
}

/** The bytes of the file with other contents of parts, and with sums that fit them. */
export function withOtherParts(
  { manifest, contents }: ExampleFile,
  changes: Readonly<Record<string, Buffer | undefined>>,
  facts: Facts = {},
): Buffer {
  const all = new Map<string, Buffer>();
  for (const [name, bytes] of Object.entries({ ...Object.fromEntries(contents), ...changes }))
    if (bytes !== undefined) all.set(name, bytes);
  return putTogether(
    { ...manifestFor(manifest, all), facts: { ...manifest.facts, ...facts } },
    all.values(),
  );
}

/** Opens a file as a creation does, with a cache in the folder. Resolves with the path and the format of the layer below the node's disk. */
export async function loadClusterFile(
  folder: string,
  file: ClusterFileReference,
): Promise<readonly string[]> {
  const runtime: Runtime = {
    environment: {
      ...process.env,
      XDG_CACHE_HOME: join(folder, "cache"),
      XDG_STATE_HOME: join(folder, "state"),
    },
    clock: systemClock,
    progress: silentProgress,
  };
  const directory = join(folder, "copy");
  await mkdir(directory, { recursive: true });
  const qemu = openQemu(runtime, hostArchitecture());
  const origin = await resolveFile({ ...runtime, signal: neverAborted }, qemu, {
    clusterId: "copy",
    file,
  });
  await using opened = await origin.open(directory, neverAborted);
  const { disk } = nodeParts(
    { snapshot: opened.folder, cluster: opened.directory },
    origin.nodes[0]!,
  );
  const info = JSON.parse(await Bun.$`qemu-img info --output=json ${disk.path}`.text()) as Record<
    string,
    string
  >;
  return [info["full-backing-filename"] ?? "", info["backing-filename-format"] ?? ""];
}

/** What `loadClusterFile` has left besides images. */
export async function leftOfFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter(
    (name) =>
      /^(?:copy|cache)\//.test(name) &&
      /\.\.file|\.part|\/draft|disk|memory|keys|outside/.test(name),
  );
}
