import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import type { NodeFacts } from "../../../../../src/backend/vm/cluster-facts.ts";
import type { BaseLayer } from "../../../../../src/backend/vm/images/base-layers.ts";
import { identityOf } from "../../../../../src/backend/vm/images/image-verification.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import {
  checkSnapshot,
  describeContents,
  factsPath,
  factsText,
  savedFiles,
} from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const node = { role: "agent", index: 0 } as NodeFacts;
const machines = { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 768, cpus: 1 } as const;
const deletion = "Nothing was stopped. Delete the snapshot, and make another one.";

interface Given {
  /** The version of this machine's QEMU; the snapshot's is 7.2.22. */
  readonly version?: string;
  /** The image that the disks are layers of. Absent: none. */
  readonly image?: string;
  /** What was recorded about the files below the disks. Absent: an earlier version made the cluster. */
  readonly base?: readonly BaseLayer[];
  /** Changes the snapshot's folder. */
  readonly change?: (folder: string) => Promise<void>;
}

/** Checks a snapshot of one machine. */
async function check({ version = "QEMU emulator version 7.2.22", image, base, change }: Given) {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "installed");
  const { disk, memory, state } = savedFiles(node);
  const files: Record<string, { readonly bytes: number; readonly sha256: string }> = {};
  for (const path of [disk, memory, state]) {
    await mkdir(join(folder, dirname(path)), { recursive: true });
    await writeFile(join(folder, path), path);
    const { bytes, sha256 } = await describeContents(join(folder, path), neverAborted);
    files[path] = { bytes, sha256 };
  }
  const facts = { createdAt: "2026-01-01T00:00:00.000Z", qemuVersion: "7.2.22", machines, files };
  await writeFile(factsPath(folder), factsText(facts));
  await change?.(folder);
  const qemu = {
    systemName: "qemu-system-x86_64",
    system: async () => ({ status: 0, stdout: version, stderr: "" }),
    image: async () => ({
      status: 0,
      stdout: JSON.stringify(image === undefined ? {} : { "full-backing-filename": image }),
      stderr: "",
    }),
  } as unknown as Qemu;
  const snapshot = { name: "installed", folder, isComplete: true };
  const cluster = { id: "one", creationId: "0123456789abcdef", directory: scratch.path };
  return await checkSnapshot(
    qemu,
    { cluster, facts: { clusterId: "one", nodes: [node], base }, snapshot },
    neverAborted,
  );
}

test.each(["7.2.22", "7.2.0", "7.2.23 (Debian 1:7.2+dfsg-7)"])(
  "a snapshot of QEMU 7.2.22 can be restored with QEMU %s",
  async (version) => {
    const image = import.meta.path;
    expect(await check({ version: `QEMU emulator version ${version}`, image })).toMatchObject({
      qemuVersion: "7.2.22",
    });
  },
);

test.each(["7.1.22", "8.2.22", "7.20.22"])(
  "a snapshot of QEMU 7.2.22 is refused with QEMU %s",
  async (version) => {
    expect(await failureOf(check({ version: `QEMU emulator version ${version}` }))).toMatchObject({
      id: "snapshot-unusable",
      message: `The snapshot "installed" of cluster "one" was made by QEMU 7.2.22, and this computer has ${version}.`,
      hint: "Nothing was stopped. Use the QEMU that made it, or make another snapshot.",
      facts: { cluster: "one", snapshot: "installed" },
    });
  },
);

test("a QEMU that doesn't tell its version is an error", async () => {
  expect(await failureOf(check({ version: "hello" }))).toMatchObject({
    id: "engine-failed",
    message: "qemu-system-x86_64 --version failed: hello.",
  });
});

test.each<[string, Given]>([
  [
    "is damaged: its snapshot.json cannot be read",
    { change: async (folder) => rm(factsPath(folder)) },
  ],
  [
    "is damaged: agent_0/memory is missing",
    { change: async (folder) => rm(join(folder, "agent_0/memory")) },
  ],
  [
    "is damaged: agent_0/disk.qcow2 has changed",
    {
      change: async (folder) => writeFile(join(folder, "agent_0/disk.qcow2"), "agent_0/disk.qcow3"),
    },
  ],
  [
    "is damaged: agent_0/disk.qcow2 has changed",
    {
      change: async (folder) => writeFile(join(folder, "agent_0/disk.qcow2"), "longer than before"),
    },
  ],
  [
    "is damaged: agent_0/memory is missing",
    { change: async (folder) => writeFile(factsPath(folder), await withoutMemory(folder)) },
  ],
  ["needs the image /nowhere/debian.img, which is not there", { image: "/nowhere/debian.img" }],
])("a snapshot that %s is refused, and the hint says what to do", async (why, given) => {
  expect(await failureOf(check(given))).toMatchObject({
    id: "snapshot-unusable",
    message: `The snapshot "installed" of cluster "one" ${why}.`,
    hint: deletion,
  });
});

test("a snapshot whose image has other contents than when the machines were created is refused; a touched image isn't", async () => {
  const path = import.meta.path;
  const hex = new Bun.CryptoHasher("sha256").update(await Bun.file(path).bytes()).digest("hex");
  const layer = (sum: string): BaseLayer => ({
    path,
    identity: "another time",
    sum: { algorithm: "sha256", hex: sum },
  });
  expect((await check({ base: [layer(hex)] })).qemuVersion).toBe("7.2.22");
  expect(await failureOf(check({ base: [layer("0".repeat(64))] }))).toMatchObject({
    id: "image-not-found",
    message: expect.stringContaining("was replaced or changed"),
    facts: { cluster: "one", image: path, expected: "0".repeat(64) },
  });
});

test("a file that nobody has touched since it was saved isn't read again", async () => {
  const facts = await check({
    change: async (folder) => {
      const saved = (await Bun.file(factsPath(folder)).json()) as {
        readonly files: Record<string, object>;
      };
      const path = savedFiles(node).memory;
      const identity = await identityOf(join(folder, path));
      const files = {
        ...saved.files,
        [path]: { bytes: path.length, sha256: "of another file", identity },
      };
      await writeFile(factsPath(folder), JSON.stringify({ ...saved, files }));
    },
  });
  expect(facts.qemuVersion).toBe("7.2.22");
});

/** The snapshot's facts, without its memory. */
async function withoutMemory(folder: string): Promise<string> {
  const facts = (await Bun.file(factsPath(folder)).json()) as {
    readonly files: Record<string, unknown>;
  };
  const { [savedFiles(node).memory]: _, ...files } = facts.files;
  return JSON.stringify({ ...facts, files });
}
