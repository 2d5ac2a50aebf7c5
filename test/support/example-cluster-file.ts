/** A file with a cluster of one virtual machine, made without one. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateKeyPair } from "../../src/ssh/keys.ts";
import { manifestFor, putTogether, sha256 } from "./rewrite-cluster-file.ts";
import { wireKey } from "./ssh-options.ts";

export type Facts = Record<string, unknown>;
export interface ExampleFile {
  readonly manifest: { readonly parts: readonly { name: string; bytes: number; sha256: string }[]; facts: Facts };
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
    ["master_0/memory", Buffer.from("memory")],
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
  const manifest = { format: "cluster-e2e-cluster", formatVersion: 1, backend: "vm", createdBy: "1", facts, parts: [] };
  const full = { ...manifestFor(manifest, contents), facts };
  return { manifest: full, contents, bytes: putTogether(full, contents.values()) };
}
