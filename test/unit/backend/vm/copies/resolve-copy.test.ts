/** What a copy of a snapshot relies on between its plan and its start, with programs in place of QEMU that only answer. */
import { expect, test } from "bun:test";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type MachineSettings,
  writeClusterFacts,
} from "../../../../../src/backend/vm/cluster-facts.ts";
import { assertMemory, resolveCopy } from "../../../../../src/backend/vm/copies/resolve-copy.ts";
import { identityOf } from "../../../../../src/backend/vm/images/image-verification.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import {
  factsPath,
  factsText,
  savedFiles,
  snapshotFolder,
} from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { snapshotTitle } from "../../../../../src/backend/shared/describe-copy.ts";
import type { CopyRequest } from "../../../../../src/backend/contract.ts";
import { generateKeyPair } from "../../../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../../../src/store/creation-folder.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { usableMemory } from "../../../../../src/system/usable-memory.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { machineNode } from "../../../../support/machine-node.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { wireKey } from "../../../../support/ssh-options.ts";

const architecture = architectureOf("x64");
/** Its accelerators work if the trials' programs end like this. */
const qemuOf = (status: number): Qemu => ({
  architecture,
  systemName: "qemu-system-x86_64",
  run: async () => ({
    status,
    stdout: "",
    stderr: "qemu-system-x86_64: -accel kvm: no such device\n",
  }),
  system: async () => ({ status: 0, stdout: "QEMU emulator version 7.2.22", stderr: "" }),
  image: async () => ({ status: 0, stdout: "{}", stderr: "" }),
});
const node = machineNode();
const creationId = "0123456789abcdef";

/** A cluster of one node with the snapshot `installed`. */
async function openSource({
  memoryMegabytes = 64,
  bytes = 1,
  accelerator = "tcg",
  qemu = qemuOf(1),
}: Partial<Pick<MachineSettings, "memoryMegabytes" | "accelerator">> & {
  bytes?: number;
  qemu?: Qemu;
} = {}) {
  const root = await scratchFolder();
  const directory = join(root.path, `source-${creationId}`);
  const folder = snapshotFolder(directory, "installed");
  const machines = { accelerator, isSandboxed: true, memoryMegabytes, cpus: 1 };
  const files: Record<string, object> = {};
  const { disk, memory, state } = savedFiles(node);
  for (const path of [disk, memory, state]) {
    await mkdir(join(folder, dirname(path)), { recursive: true });
    await writeFile(join(folder, path), "x");
    files[path] = { bytes, sha256: "", identity: await identityOf(join(folder, path)) };
  }
  const text = (createdAt: string) =>
    factsText({ createdAt, qemuVersion: "7.2.22", machines, files } as Parameters<
      typeof factsText
    >[0]);
  const save = async (createdAt = "2026-01-01T00:00:00.000Z") =>
    writeFile(factsPath(folder), text(createdAt));
  await save();
  const image = join(root.path, "image");
  await writeFile(image, "image");
  const hex = new Bun.CryptoHasher("sha256").update("image").digest("hex");
  const sum = { algorithm: "sha256", hex } as const;
  await writeClusterFacts(directory, {
    base: [{ path: image, sum, identity: await identityOf(image) }],
    clusterId: "source",
    creationId,
    variant: "oss",
    distribution: "debian-12",
    counts: { master: 1, agent: 0, public_agent: 0 },
    createdAt: "2026-01-01T00:00:00.000Z",
    createdBy: "1",
    machines,
    nodes: [node],
  });
  const [key, hostKey] = [generateKeyPair("key"), wireKey(generateKeyPair("").publicKey)];
  await writeFile(creationFiles(directory).privateKey, key.privateKey);
  await createKnownHosts(creationFiles(directory).knownHosts).pin(
    "127.0.0.1",
    node.ports.ssh,
    hostKey,
  );
  const { progress, steps } = recordingProgress();
  const source = {
    id: "source",
    creationId,
    directory,
    nodes: [{ state: "stopped" }],
  } as unknown as CopyRequest["source"];
  const request = { clusterId: "copy", source, snapshot: "installed" } as CopyRequest;
  const runtime = { clock: systemClock, environment: {}, progress };
  return {
    folder,
    image,
    key,
    hostKey,
    save,
    steps,
    resolve: async () =>
      resolveCopy({ ...runtime, signal: neverAborted }, qemu, request, root.path),
    [Symbol.asyncDispose]: root[Symbol.asyncDispose],
  };
}

test("a snapshot that is still the one of the plan is opened with the keys of its machines, and locked", async () => {
  await using source = await openSource();
  const origin = await source.resolve();
  expect(source.steps).toEqual(["Check the snapshot: done"]);
  expect(origin).toMatchObject({
    whyBoot: undefined,
    summary: { cluster: "source", snapshot: "installed" },
  });
  {
    await using opened = await origin.open("", neverAborted);
    expect(opened).toMatchObject({
      folder: source.folder,
      movesDisks: false,
      privateKey: source.key.privateKey,
    });
    expect(opened.hostKeys).toEqual([source.hostKey]);
    expect((await failureOf(origin.open("", AbortSignal.abort(new Error("waits"))))).message).toBe(
      "waits",
    );
  }
  await (await origin.open("", neverAborted))[Symbol.asyncDispose]();
});

test("a snapshot that was deleted or made again since the plan is an error, and stays unlocked", async () => {
  await using source = await openSource();
  const origin = await source.resolve();
  const gone = {
    id: "snapshot-not-found",
    message: 'The snapshot "installed" of cluster "source" was deleted or made again meanwhile.',
  };
  await source.save("2026-01-02T00:00:00.000Z");
  expect(await failureOf(origin.open("", neverAborted))).toMatchObject(gone);
  await rm(source.folder, { recursive: true });
  expect(await failureOf(origin.open("", neverAborted))).toMatchObject(gone);
  await mkdir(source.folder);
  await source.save();
  await (await origin.open("", neverAborted))[Symbol.asyncDispose]();
});

test("a snapshot whose image was replaced since the plan is an error, and stays unlocked", async () => {
  await using source = await openSource();
  const origin = await source.resolve();
  await writeFile(source.image, "other");
  expect(await failureOf(origin.open("", neverAborted))).toMatchObject({ id: "image-not-found" });
  await writeFile(source.image, "image");
  await (await origin.open("", neverAborted))[Symbol.asyncDispose]();
});

test.each([
  ["memory", { memoryMegabytes: 1e9 }, /^The nodes need 1000000028 MB of memory/],
  ["space for disks", { bytes: 1e18 }, /GB are required/],
])("a computer without enough %s is refused by the plan", async (_, given, message) => {
  await using source = await openSource(given);
  expect(await failureOf(source.resolve())).toMatchObject({
    id: "capacity-lacking",
    message: expect.stringMatching(message),
  });
});

const restoreIt = 'Restore the snapshot in cluster "source" instead of creating another cluster.';
test.each<
  [number, readonly string[], number, readonly [message: string, hint: string] | undefined]
>([
  [1, ["stopped", "stopped"], 128, undefined],
  [1, ["running", "running"], 256, undefined],
  [3, ["stopped", "stopped"], 384, undefined],
  [
    1,
    ["stopped", "stopped"],
    127,
    ["The nodes need 128 MB of memory, but this computer has 127 MB.", restoreIt],
  ],
  [
    1,
    ["running", "stopped"],
    128,
    [
      'The nodes beside those of cluster "source" need 192 MB of memory, but this computer has 128 MB.',
      restoreIt,
    ],
  ],
  [
    3,
    ["stopped", "stopped"],
    383,
    [
      "The nodes of 3 copies need 384 MB of memory, but this computer has 383 MB.",
      "Make fewer copies at once.",
    ],
  ],
])(
  "%d copies of nodes that are %j, on a machine with %d MB: %p",
  async (copies, states, megabytes, refusal) => {
    const source = {
      id: "source",
      nodes: states.map((state) => ({ state })),
    } as unknown as CopyRequest["source"];
    // QEMU itself takes 28 MB.
    const check = async (): Promise<void> =>
      assertMemory(
        source,
        { memoryMegabytes: 36 },
        usableMemory(megabytes * 1024 ** 2, undefined),
        copies,
      );
    if (refusal === undefined) return await check();
    const [message, hint] = refusal;
    expect(await failureOf(check())).toMatchObject({ id: "capacity-lacking", message, hint });
  },
);

test("a snapshot is named with its age, if that is known", () => {
  const origin = { cluster: "one", snapshot: "installed" };
  const text = 'snapshot "installed" of cluster "one", made ';
  expect(snapshotTitle({ ...origin, createdAt: undefined })).toBe(`${text}at an unknown time`);
  expect(snapshotTitle({ ...origin, createdAt: "2026-01-02T03:04:05.000Z" })).toBe(
    `${text}2026-01-02 03:04 UTC`,
  );
});

test("a snapshot is not copied without the host key of each machine, since nobody could log in to its copy", async () => {
  await using source = await openSource();
  await rm(creationFiles(dirname(dirname(source.folder))).knownHosts);
  expect(await failureOf(source.resolve())).toMatchObject({
    id: "key-missing",
    message: 'The host key of master_0 of cluster "source" is not on this computer.',
  });
});

test.skipIf(process.platform !== "linux").each([
  ["kvm", architecture.probe.status, undefined],
  ["kvm", 1, "was made under kvm, which does not work here: no such device."],
  [
    "hvf",
    architecture.probe.status,
    "was made under hvf, which does not work here: this operating system",
  ],
] as const)(
  "memory that was saved under %s, with trials that end with %d, continues unless: %s",
  async (accelerator, status, why) => {
    await using source = await openSource({ accelerator, qemu: qemuOf(status) });
    if (why === undefined) expect((await source.resolve()).machines).toMatchObject({ accelerator });
    else
      expect(await failureOf(source.resolve())).toMatchObject({
        id: "snapshot-unusable",
        message: expect.stringContaining(why),
      });
  },
);
