import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import { beginCreation, creationFiles, endCreation } from "../../../src/store/creation-folder.ts";
import { findLastRecord, parseLastRecord } from "../../../src/store/last-record.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const directory = "/state/cloud/us-west-2/demo-0123456789abcdef";
const node = {
  id: "i-0123",
  role: "master",
  index: 0,
  state: "running",
  publicAddress: "192.0.2.1",
  privateAddress: "10.0.0.1",
  ssh: { host: "192.0.2.1", port: 22, user: "admin" },
  web: { host: "192.0.2.1", httpPort: 80, httpsPort: 443 },
};
const cluster = {
  id: "demo",
  creationId: "0123456789abcdef",
  backend: "cloud",
  region: "us-west-2",
  variant: "oss",
  distribution: "debian-12",
  state: "running",
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: "2026-01-01T02:00:00.000Z",
  webUi: "http",
  platform: "etcd 2379 3.5",
  nodes: [node],
  directory: "/elsewhere",
};

const read = (change: object): unknown =>
  parseLastRecord({ schemaVersion: 1, cluster: { ...cluster, ...change } }, directory);
const withNode = (change: object): unknown => read({ nodes: [{ ...node, ...change }] });

test("a record is read as it was written, but its folder is where it was found", () => {
  const { createdAt, expiresAt, ...rest } = cluster;
  expect(read({})).toEqual({
    ...rest,
    directory,
    createdAt: new Date(createdAt),
    expiresAt: new Date(expiresAt),
  });
});

test("a node without an address has none", () => {
  expect(withNode({ publicAddress: undefined, ssh: { ...node.ssh, host: "" } })).toMatchObject({
    nodes: [{ publicAddress: undefined, ssh: { host: "" } }],
  });
});

test.each([
  ["another cluster", { id: "other" }],
  ["another creation", { creationId: "fedcba9876543210" }],
  ["another backend", { backend: "vm" }],
  ["no region", { region: "../.." }],
  ["an unknown variant", { variant: "x" }],
  ["an unknown state", { state: "x" }],
  ["no nodes", { nodes: [] }],
  ["no list of nodes", { nodes: "x" }],
])("a record of %s is none", (_what, change) => {
  expect(read(change)).toBeUndefined();
});

test.each([
  ["an option as its id", { id: "-oProxyCommand=x" }],
  ["another role", { role: "x" }],
  ["a negative index", { index: -1 }],
  ["another state", { state: "x" }],
  ["a user with a space", { ssh: { ...node.ssh, user: "a b" } }],
  ["no port", { ssh: { ...node.ssh, port: 0 } }],
  ["no web server", { web: undefined }],
])("a node with %s makes it none", (_what, change) => {
  expect(withNode(change)).toBeUndefined();
});

test("a host name is no address", () => {
  expect(withNode({ ssh: { ...node.ssh, host: "evil.example.com" } })).toMatchObject({
    nodes: [{ ssh: { host: "" } }],
  });
});

test("other files are none", () => {
  expect(parseLastRecord([], directory)).toBeUndefined();
  expect(parseLastRecord({ schemaVersion: 2, cluster }, directory)).toBeUndefined();
  expect(
    parseLastRecord({ schemaVersion: 1, cluster }, "/state/cloud/us-west-2/logs"),
  ).toBeUndefined();
});

/** Writes such a record into the folder of its creation. */
async function keep(own: string, change: object): Promise<void> {
  const creationId = own.slice(-16);
  await mkdir(dirname(own), { recursive: true });
  await beginCreation(own, "demo", creationId);
  await endCreation(own, "finished");
  const text = JSON.stringify({ schemaVersion: 1, cluster: { ...cluster, ...change, creationId } });
  await writeFile(creationFiles(own).lastRecord, text, { mode: 0o600 });
}

test.each([
  [0o600, "demo"],
  [0o620, undefined],
  [0o602, undefined],
])(
  "a record whose file has the mode %o is %p, because others may have written it",
  async (mode, id) => {
    await using scratch = await scratchFolder();
    const own = join(scratch.path, "demo-0123456789abcdef");
    await keep(own, {});
    await chmod(creationFiles(own).lastRecord, mode);
    expect((await findLastRecord(scratch.path, "demo", 0))?.id).toBe(id);
  },
);

const [early, late] = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"];

test.each([
  ["the newest", [early, late], late],
  ["the newest, whatever the folders' names", [late, early], late],
  ["one with a time", [undefined, early], early],
  ["one with a time, whatever the folders' names", [early, undefined], early],
])("of several creations of the same id, %s counts", async (_, times, createdAt) => {
  await using scratch = await scratchFolder();
  await keep(join(scratch.path, "demo-0000000000000000"), { createdAt: times[0] });
  await keep(join(scratch.path, "demo-1111111111111111"), { createdAt: times[1] });
  expect((await findLastRecord(scratch.path, "demo", 0))?.createdAt).toEqual(new Date(createdAt));
});

test("a cluster counts until its time is over", async () => {
  await using scratch = await scratchFolder();
  await keep(join(scratch.path, "demo-0000000000000000"), {});
  const end = Date.parse(cluster.expiresAt);
  expect((await findLastRecord(scratch.path, "demo", end - 1))?.id).toBe("demo");
  expect(await findLastRecord(scratch.path, "demo", end)).toBeUndefined();
});

test.each(["starting", "incomplete", "ending"])(
  "a cluster that was %s doesn't count",
  async (state) => {
    await using scratch = await scratchFolder();
    await keep(join(scratch.path, "demo-0000000000000000"), { createdAt: early });
    await keep(join(scratch.path, "demo-1111111111111111"), { createdAt: late, state });
    expect(await findLastRecord(scratch.path, "demo", 0)).toBeUndefined();
  },
);

test("a cluster without an end always counts", async () => {
  await using scratch = await scratchFolder();
  await keep(join(scratch.path, "demo-0000000000000000"), { expiresAt: undefined });
  expect((await findLastRecord(scratch.path, "demo", Date.parse("2036-01-01")))?.id).toBe("demo");
});
