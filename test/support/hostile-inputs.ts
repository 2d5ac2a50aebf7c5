/** The texts and streams that cost each parser most, and what gives them to it. */
import { passageThrough } from "../../src/backend/container/engine/passage.ts";
import { createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { toClusters as toCloudClusters } from "../../src/backend/cloud/records.ts";
import { toTags } from "../../src/backend/cloud/tags.ts";
import { engineKinds } from "../../src/backend/container/engine/engine-kinds.ts";
import { labelNames } from "../../src/backend/container/records/labels.ts";
import { readContainers } from "../../src/backend/container/records/read-containers.ts";
import { toClusters as toContainerClusters } from "../../src/backend/container/records/records.ts";
import { toSnapshots } from "../../src/backend/container/snapshots/read-snapshots.ts";
import { monitorName, runOnMonitor } from "../../src/backend/vm/qemu/monitor.ts";
import { parseSecrets } from "../../src/platform/cluster-secrets.ts";
import { checkedTar } from "../../src/system/files/checked-tar.ts";
import { unpackTar } from "../../src/system/files/read-tar.ts";
import { ArchiveProblem } from "../../src/system/files/tar.ts";
import { Masker } from "../../src/system/masker.ts";
import { size } from "./costly-texts.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { type RawEntry, paxRecord, rawArchive } from "./tar-blocks.ts";
const { signal } = new AbortController();

export const frame = (name: string, text: string): string =>
  `${name} ${Buffer.from(text).toString("base64")}\n`;
const hex = (index: number, length: number): string => index.toString(16).padStart(length, "0");

export async function hideSecrets(text: string): Promise<void> {
  const masker = new Masker();
  const secrets = await parseSecrets(frame("configuration", text) + frame("secret-0", text));
  for (const value of secrets?.values ?? []) masker.hide(value);
  masker.text(text.slice(0, 1_000_000));
}

export const node = (index: number) => ({
  [labelNames.clusterId]: `c${index}`,
  [labelNames.creationId]: hex(index, 16),
  [labelNames.role]: "master",
  [labelNames.index]: "0",
  [labelNames.counts]: "master=1 agent=0 public_agent=0",
});

export function readEngine(
  count: number,
  labelsOf: (index: number) => Readonly<Record<string, string>>,
): void {
  const indexes = Array.from({ length: count }, (_, index) => index);
  const nameOf = (labels: Readonly<Record<string, string>>): string =>
    `cluster-e2e-${labels[labelNames.clusterId]}-${labels[labelNames.creationId]}`;
  const networks = indexes.map((index) => {
    const labels = labelsOf(index);
    return { id: hex(index, 64), name: nameOf(labels), labels };
  });
  const containers = indexes.map((index) => {
    const Labels = labelsOf(index);
    const Networks = { [nameOf(Labels)]: { IPAddress: "192.0.2.1" } };
    const Name = `/cluster-e2e-${Labels[labelNames.clusterId]}-master_0`;
    return { Id: hex(index, 64), Name, Config: { Labels }, NetworkSettings: { Networks } };
  });
  const read = readContainers({ networks, containers });
  if (read.containers.length !== count)
    throw new Error("the containers are not what they should be");
  const passageTo = passageThrough(engineKinds.docker, {});
  toContainerClusters({ ...read, abandoned: new Set() }, { root: "/state", passageTo });
}

export function readImages(count: number, snapshotOf: (index: number) => string): void {
  const parts = Array.from({ length: count }, (_, index) => {
    const labels = {
      ...node(1),
      [labelNames.index]: String(index % 1000),
      [labelNames.snapshot]: snapshotOf(index),
    };
    const name = `${labels[labelNames.creationId]}-${snapshotOf(index)}-master_${index % 1000}`;
    return { labels, name };
  });
  const images = parts.map(({ labels, name }) => ({
    Config: { Labels: labels },
    RepoTags: [`localhost/cluster-e2e-snapshot:${name}`],
  }));
  toSnapshots(
    images,
    parts.map(({ labels, name }) => ({ Name: `cluster-e2e-snapshot-${name}`, Labels: labels })),
  );
}

export function readInstances(count: number, clusterIdOf: (index: number) => string): void {
  const instances = Array.from({ length: count }, (_, index) => ({
    InstanceId: `i-${hex(index, 17)}`,
    Tags: toTags(
      "x",
      {
        clusterId: clusterIdOf(index),
        creationId: hex(1, 16),
        role: "master",
        variant: "oss",
        sshUser: "admin",
      },
      [],
    ),
  }));
  toCloudClusters(instances, { region: "us-west-2", root: "/state" });
}

export async function unpack(entries: readonly RawEntry[]): Promise<void> {
  await using scratch = await scratchFolder();
  async function* archive(): AsyncGenerator<Uint8Array, void, undefined> {
    yield rawArchive({ name: "./", type: "5", mode: 0o755 }, ...entries);
  }
  const limits = { entries: 100_000, totalBytes: size };
  await unpackTar(archive(), join(scratch.path, "target"), limits, signal).catch(
    (error: unknown) => {
      if (!(error instanceof ArchiveProblem)) throw error;
    },
  );
}

export const link = (name: string, linkTarget: string): RawEntry => ({
  name: `./${name}`,
  type: "2",
  linkTarget,
});
export const longLinks = (count: number, target: (index: number) => string): readonly RawEntry[] =>
  Array.from({ length: count }, (_, index) => [
    { name: "pax", type: "x", contents: paxRecord("linkpath", target(index)) },
    link(`l${index}`, "x"),
  ]).flat();

export const longNames = (
  count: number,
  name: (index: number) => string,
  type = "0",
): readonly RawEntry[] =>
  Array.from({ length: count }, (_, index) => [
    { name: "pax", type: "x", contents: paxRecord("path", name(index)) },
    { name: "x", type, linkTarget: "x" },
  ]).flat();

export async function checkLayer(entries: readonly RawEntry[]): Promise<void> {
  try {
    for await (const _ of checkedTar(Readable.from([rawArchive(...entries)]))) continue;
  } catch (error) {
    if (!(error instanceof ArchiveProblem)) throw error;
  }
}

export async function askQemu(answer: string): Promise<void> {
  await using folder = await scratchFolder();
  const server = createServer((socket) => socket.on("error", () => {}).end(answer));
  await new Promise<void>((resolve) => server.listen(join(folder.path, monitorName), resolve));
  try {
    await runOnMonitor(folder.path, [{ execute: "query-status" }], signal);
  } finally {
    server.close();
  }
}

export const context = {
  action: "DescribeInstances",
  region: "us-west-2",
  credentialSource: "a test",
  renewal: "Renew them.",
  clockOffSeconds: 0,
  endpoint: undefined,
  proxy: undefined,
};
export const ended = (text: string) => ({ status: 1, stdout: text, stderr: text });
