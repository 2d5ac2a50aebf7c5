/**
 * Files with clusters of containers that are damaged, foreign or made by an attacker: each is refused by an error with its id, and the engine has made
 * nothing of it. The engine is scripted.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { OpenOrigin } from "../../../../../src/backend/container/copies/copy-origin.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { openEngine } from "../../../../../src/backend/container/engine/engine.ts";
import { fileOrigin } from "../../../../../src/backend/container/files/file-origin.ts";
import { type Runtime, silentProgress, systemClock } from "../../../../../src/system/runtime.ts";
import { ContainerWorld } from "../../../../faults/worlds/container-world.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import {
  type Manifest,
  manifestFor,
  putTogether,
  sha256,
} from "../../../../support/rewrite-cluster-file.ts";
import {
  type RawEntry,
  endOfArchive,
  paxRecord,
  rawArchive,
  rawEntry,
} from "../../../../support/tar-blocks.ts";

const state: { world?: ContainerWorld } = {};
const world = (): ContainerWorld => state.world!;
const usersImage = "localhost/users:1";
const creation = { clusterId: "copy", creationId: "0123456789abcdef" };

async function open(path: string): Promise<OpenOrigin> {
  const { environment, stateFolder } = world();
  const runtime: Runtime = {
    environment: { ...environment },
    clock: systemClock,
    progress: silentProgress,
  };
  const engine = openEngine(engineKinds.docker, "", runtime);
  const root = join(stateFolder, "docker");
  await mkdir(root, { recursive: true });
  const request = { clusterId: "copy", file: { location: { path, shown: "FILE" } } };
  const origin = await fileOrigin(engine, { request, root }, runtime, neverAborted);
  return origin.open(creation, neverAborted);
}

/** What the engine has, besides the user's image. */
const made = (): readonly string[] => [
  ...world()
    .engine.images.map(({ name }) => name)
    .filter((name) => name !== usersImage),
  ...world().engine.volumes.keys(),
];

beforeAll(async () => {
  state.world = await ContainerWorld.open();
  await world().engine.run(["commit", "x", usersImage], Buffer.alloc(0));
});

afterAll(async () => state.world?.[Symbol.asyncDispose]());

type Facts = Readonly<Record<string, unknown>>;
interface Layers {
  readonly base?: Buffer;
  readonly top?: Buffer;
  readonly volume?: Buffer;
}

const folders: readonly RawEntry[] = [
  { name: "etc/", type: "5" },
  { name: "bin", type: "2", linkTarget: "/usr/bin" },
];
const goodBase = rawArchive(...folders, { name: "etc/hostname", contents: "node" });
const goodTop = rawArchive({ name: "./etc/.wh.hostname" }, { name: "dev/null", type: "3" });
const goodVolume = rawArchive({ name: "./", type: "5" }, { name: "./note", contents: "saved" });
const part = (sum: string): string => `layers/${sum}`;

/** A file whose sums are right, with these contents and facts. */
function fileWith(
  { base = goodBase, top = goodTop, volume = goodVolume }: Layers = {},
  facts: Facts = {},
) {
  const contents = new Map([
    [part(sha256(base)), base],
    [part(sha256(top)), top],
    ["volumes/master_0", volume],
  ]);
  const node = {
    role: "master",
    index: 0,
    platformAddress: "172.18.0.2/16",
    memory: "1g",
    volumes: ["/var/lib/docker"],
  };
  const own = {
    clusterId: "first",
    snapshot: "installed",
    createdAt: "2026-11-24T12:00:00.000Z",
    variant: "none",
    distribution: "debian-12",
    counts: { master: 1, agent: 0, public_agent: 0 },
    architecture: "amd64",
    cgroupVersion: "2",
    nodes: [{ ...node, layers: [sha256(base), sha256(top)] }],
    ...facts,
  };
  const format = {
    format: "cluster-e2e-cluster",
    formatVersion: 1,
    backend: "container",
    createdBy: "1",
    facts: own,
  };
  return { manifest: manifestFor({ ...format, parts: [] }, contents), contents };
}

const good = fileWith();
const bytes = putTogether(good.manifest, good.contents.values());
const withLayers = (layers: Layers): Buffer => {
  const { manifest, contents } = fileWith(layers);
  return putTogether(manifest, contents.values());
};
const withTop = (...entries: readonly RawEntry[]): Buffer =>
  withLayers({ top: rawArchive(...entries) });
const withFacts = (facts: Facts): Buffer =>
  putTogether(fileWith({}, facts).manifest, good.contents.values());
const withNode = (facts: Facts): Buffer =>
  withFacts({
    nodes: [
      { ...(good.manifest.facts as { readonly nodes: readonly Facts[] }).nodes[0], ...facts },
    ],
  });
const withSecondNode = (facts: Facts): Buffer => {
  const { nodes } = good.manifest.facts as { readonly nodes: readonly Facts[] };
  const second = { ...nodes[0], role: "agent", platformAddress: "172.18.0.3/16", ...facts };
  return withFacts({ counts: { master: 1, agent: 1, public_agent: 0 }, nodes: [...nodes, second] });
};
const withFields = (fields: Partial<Manifest> & Facts): Buffer =>
  putTogether({ ...good.manifest, ...fields }, good.contents.values());
const withLie = (place: number, lie: Facts): Buffer =>
  withFields({
    parts: good.manifest.parts.map((each, index) => (index === place ? { ...each, ...lie } : each)),
  });
const flipped = (at: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at < 0 ? bytes.length + at : at]! ^= 0x55;
  return changed;
};

test("a good file becomes images under names of this program, and no others", async () => {
  const path = join(world().folder, "good.zst");
  await writeFile(path, bytes);
  const opened = await open(path);
  const [node] = opened.nodes;
  expect(node).toMatchObject({
    platformAddress: "172.18.0.2/16",
    settings: { customVolumes: [], limits: { memory: "1g" } },
  });
  expect(made()).toEqual([node.image, node.volume!]);
  const image = world().engine.images.find(({ name }) => name === node.image)!;
  expect(image.layers).toEqual([sha256(goodBase), sha256(goodTop)]);
  expect(image.labels["cluster-e2e.creation-id"]).toBe(creation.creationId);
  await opened.letGo("running");
  expect(made()).toEqual([]);
});

test("a file without its lowest layers takes those of an image that the engine has", async () => {
  const path = join(world().folder, "upper.zst");
  const { layers } = world().engine.images.find(({ name }) => name === usersImage)!;
  const nodes = [
    {
      role: "master",
      index: 0,
      platformAddress: "172.18.0.2/16",
      layers: [...layers, sha256(goodTop)],
      volumes: [],
    },
  ];
  const contents = new Map([[part(sha256(goodTop)), goodTop]]);
  const { manifest } = fileWith({}, { nodes });
  await writeFile(path, putTogether(manifestFor(manifest, contents), contents.values()));
  const opened = await open(path);
  expect(world().engine.images.find(({ name }) => name === opened.nodes[0].image)!.layers).toEqual(
    nodes[0]!.layers,
  );
  await opened.letGo("failed");
  expect(made()).toEqual([]);
});

test("an engine that has not loaded what is in the file is an error, and nothing is left", async () => {
  const path = join(world().folder, "unloaded.zst");
  await writeFile(path, bytes);
  await using _ = world().strike({
    call: "load",
    when: "before",
    answer: { status: 0, stdout: "", stderr: "", isKilled: false },
  });
  const failure = await failureOf(open(path));
  expect(failure).toMatchObject({
    id: "engine-failed",
    message: expect.stringContaining("has not loaded the image"),
  });
  expect(made()).toEqual([]);
});

const damaged = "snapshot-unusable";
const leadsOut = /leads out of the archive/;
const notWithin = /is not a name within the archive/;
const badFacts = /facts about the cluster are not valid/;
const badParts = /parts are not those of its nodes/;

const files: readonly (readonly [string, string, RegExp, () => Buffer])[] = [
  ["an empty file", damaged, /was not written by/, () => Buffer.alloc(0)],
  [
    "an image that docker saved",
    damaged,
    /was not written by/,
    () => rawArchive({ name: "manifest.json", contents: "[]" }),
  ],
  ["a manifest that isn't JSON", damaged, /was not written by/, () => flipped(8)],
  ["a file that ends within its manifest", damaged, /is incomplete/, () => bytes.subarray(0, 300)],
  [
    "a file that lacks its end",
    damaged,
    /is incomplete|has another checksum/,
    () => bytes.subarray(0, -20),
  ],
  [
    "a manifest with a flipped bit",
    damaged,
    /its manifest is not valid/,
    () => flipped(bytes.indexOf("installed")),
  ],
  ["contents with flipped bits", damaged, /is damaged/, () => flipped(-60)],
  ["a newer format", damaged, /newer version/, () => withFields({ formatVersion: 2 })],
  [
    "a file of virtual machines",
    damaged,
    /is a cluster of cluster-vm/,
    () => withFields({ backend: "vm" }),
  ],
  [
    "an encrypted file",
    damaged,
    /is encrypted with age/,
    () => Buffer.from("age-encryption.org/v1\n-> X25519 abc\n"),
  ],
  [
    "containers of another processor",
    damaged,
    /holds containers for s390x/,
    () => withFacts({ architecture: "s390x" }),
  ],
  [
    "nodes that need cgroups 1",
    damaged,
    /holds nodes with centos-7, whose systemd needs cgroups 1/,
    () => withFacts({ cgroupVersion: "1", distribution: "centos-7" }),
  ],
  ["a cluster id that is a path", damaged, badFacts, () => withFacts({ clusterId: "../../etc" })],
  [
    "a snapshot's name with an option",
    damaged,
    badFacts,
    () => withFacts({ snapshot: "--privileged" }),
  ],
  [
    "no nodes",
    damaged,
    badFacts,
    () => withFacts({ counts: { master: 0, agent: 0, public_agent: 0 }, nodes: [] }),
  ],
  [
    "more nodes than it describes",
    damaged,
    badFacts,
    () => withFacts({ counts: { master: 1, agent: 9, public_agent: 0 } }),
  ],
  ["a node of a role that there isn't", damaged, badFacts, () => withNode({ role: "attacker" })],
  [
    "an address with an option",
    damaged,
    badFacts,
    () => withNode({ platformAddress: "172.18.0.2/16 --privileged" }),
  ],
  [
    "a memory limit with an option",
    damaged,
    badFacts,
    () => withNode({ memory: "1g --privileged" }),
  ],
  [
    "a volume that is a path of this machine",
    damaged,
    badFacts,
    () => withNode({ volumes: ["/etc:/etc"] }),
  ],
  ["a volume that leads up", damaged, badFacts, () => withNode({ volumes: ["/var/../etc"] })],
  [
    "a layer whose name is a path",
    damaged,
    badFacts,
    () => withNode({ layers: ["../../../etc/passwd"] }),
  ],
  ["a node without layers", damaged, badFacts, () => withNode({ layers: [] })],
  ["a second node without layers", damaged, badFacts, () => withSecondNode({ layers: [] })],
  [
    "a second node with the first one's name",
    damaged,
    badFacts,
    () => withSecondNode({ role: "master" }),
  ],
  [
    "a second node with the first one's address",
    damaged,
    badFacts,
    () => withSecondNode({ platformAddress: "172.18.0.2/16" }),
  ],
  ["a layer that no node has", damaged, badParts, () => withNode({ layers: [sha256(goodBase)] })],
  [
    "a layer that is missing above others",
    damaged,
    badParts,
    () => withNode({ layers: [sha256(goodBase), "0".repeat(64), sha256(goodTop)] }),
  ],
  ["a part of another name", damaged, badParts, () => withLie(0, { name: "manifest.json" })],
  ["a part that leads out", damaged, badParts, () => withLie(0, { name: "../x" })],
  [
    "a layer with another checksum than its name",
    damaged,
    badParts,
    () => withLie(0, { sha256: "0".repeat(64) }),
  ],
  [
    "a part twice",
    damaged,
    badParts,
    () => withFields({ parts: [...good.manifest.parts, good.manifest.parts[2]!] }),
  ],
  [
    "a volume before the layers",
    damaged,
    badParts,
    () => withFields({ parts: good.manifest.parts.toReversed() }),
  ],
  ["a volume of another node", damaged, badParts, () => withLie(2, { name: "volumes/agent_0" })],
  [
    "a size that is too large",
    damaged,
    /is incomplete/,
    () => withLie(2, { bytes: goodVolume.length + 512 }),
  ],
  [
    "a size that is too small",
    damaged,
    /is damaged/,
    () => withLie(2, { bytes: goodVolume.length - 512 }),
  ],
  [
    "a size that no disk has",
    "capacity-lacking",
    /GB are required/,
    () => withLie(2, { bytes: 2 ** 52 }),
  ],
  [
    "a volume with another checksum",
    damaged,
    /volumes\/master_0 has another checksum/,
    () => withLie(2, { sha256: "0".repeat(64) }),
  ],
  [
    "a hundred megabytes of zeros for a few bytes",
    damaged,
    /longer than its manifest says/,
    () => putTogether(good.manifest, [...good.contents.values(), Buffer.alloc(1e8)]),
  ],
  [
    "layers that are nowhere",
    "image-not-found",
    /lacks the nodes' image/,
    () => {
      const contents = new Map([[part(sha256(goodTop)), goodTop]]);
      return putTogether(manifestFor(good.manifest, contents), contents.values());
    },
  ],
  [
    "a layer that isn't an archive",
    damaged,
    /the archive is damaged/,
    () => withLayers({ top: Buffer.alloc(2048, "x") }),
  ],
  [
    "a layer that ends early",
    damaged,
    /the archive is incomplete/,
    () => withLayers({ top: goodTop.subarray(0, 512) }),
  ],
  [
    "a layer with a second archive behind its end",
    damaged,
    /the archive is damaged/,
    () => withLayers({ top: Buffer.concat([goodTop, goodBase]) }),
  ],
  ["a file above the root", damaged, leadsOut, () => withTop({ name: "../etc/cron.d/x" })],
  [
    "a file above the root in the middle",
    damaged,
    leadsOut,
    () => withTop({ name: "etc/../../x" }),
  ],
  ["an absolute name", damaged, notWithin, () => withTop({ name: "/etc/passwd" })],
  [
    "a long name that leads out",
    damaged,
    leadsOut,
    () => withTop({ name: "pax", type: "x", contents: paxRecord("path", "../x") }, { name: "x" }),
  ],
  [
    "a long name of GNU tar that leads out",
    damaged,
    leadsOut,
    () => withTop({ name: "././@LongLink", type: "L", contents: "../x\0" }, { name: "x" }),
  ],
  [
    "a sparse file with another name",
    damaged,
    /sparse files/,
    () =>
      withTop(
        { name: "pax", type: "x", contents: paxRecord("GNU.sparse.name", "../x") },
        { name: "x" },
      ),
  ],
  [
    "a hard link to a file of this machine",
    damaged,
    notWithin,
    () => withTop({ name: "shadow", type: "1", linkTarget: "/etc/shadow" }),
  ],
  [
    "a hard link above the root",
    damaged,
    leadsOut,
    () => withTop({ name: "shadow", type: "1", linkTarget: "../etc/shadow" }),
  ],
  [
    "a file through a symbolic link",
    damaged,
    /leads through a symbolic link/,
    () => withTop({ name: "out", type: "2", linkTarget: "/etc" }, { name: "out/passwd" }),
  ],
  [
    "a hard link through a symbolic link",
    damaged,
    /leads through a symbolic link/,
    () =>
      withTop(
        { name: "out", type: "2", linkTarget: "/" },
        { name: "x", type: "1", linkTarget: "out/etc/shadow" },
      ),
  ],
  ["a deletion of the folder above", damaged, leadsOut, () => withTop({ name: "etc/.wh..." })],
  ["an entry of an unknown type", damaged, /unknown type/, () => withTop({ name: "x", type: "S" })],
  [
    "a volume with a file above it",
    damaged,
    leadsOut,
    () => withLayers({ volume: rawArchive({ name: "../x" }) }),
  ],
  [
    "attributes of 3 MB",
    damaged,
    /the archive is damaged/,
    () => withTop({ name: "pax", type: "x", contents: Buffer.alloc(3e6, "x") }, { name: "x" }),
  ],
  [
    "a name of 5,000 characters",
    damaged,
    notWithin,
    () =>
      withTop(
        { name: "pax", type: "x", contents: paxRecord("path", "x".repeat(5000)) },
        { name: "x" },
      ),
  ],
  [
    "a size beyond all numbers",
    damaged,
    /the archive is damaged/,
    () => withLayers({ top: Buffer.concat([hugeEntry(), endOfArchive]) }),
  ],
];

/** An entry whose binary size takes all bits. */
function hugeEntry(): Buffer {
  const block = rawEntry({ name: "x" });
  block.fill(0xff, 124, 136);
  block[124] = 0x80;
  block.fill(" ", 148, 156);
  block.write(
    block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0"),
    148,
    "latin1",
  );
  block[154] = 0;
  return block;
}

// Shows R121.
test.each(files)("%s is refused, and nothing is left", async (_, id, message, make) => {
  const path = join(world().folder, "hostile.zst");
  await writeFile(path, make());
  expect(await failureOf(open(path))).toMatchObject({
    id,
    message: expect.stringMatching(message),
  });
  expect(made()).toEqual([]);
});
