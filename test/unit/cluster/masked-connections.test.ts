import { join } from "node:path";
import { expect, test } from "bun:test";
import { openMaskedConnections } from "../../../src/cluster/connections.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";

const { signal } = new AbortController();
const ssh = { host: "127.0.0.1", port: 1, user: "root" };
const node = (changes: object) =>
  ({ id: "i-0", role: "master", index: 0, state: "running", ssh, ...changes }) as NodeRecord;
const agent = node({ id: "i-1", role: "agent" });

/** Connections to these nodes from a machine that has no key of theirs. */
async function open(nodes: readonly NodeRecord[]) {
  const folder = await scratchFolder();
  const { progress, told } = recordingProgress();
  const detail = (level: number, text: string): void =>
    void told.push(`-${"v".repeat(level)}: ${text}`);
  const cluster = { ...exampleCluster(nodes, "oss"), directory: folder.path };
  return {
    connections: openMaskedConnections(cluster, {
      clock: scriptedClock(),
      progress: { ...progress, detail },
    }),
    told,
    key: join(folder.path, "id_ed25519"),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

test.each([
  ["that has none", [agent]],
  ["whose first master has ended", [node({ state: "ended" }), agent]],
  ["whose first master has no address", [node({ ssh: { ...ssh, host: "" } }), agent]],
  ["that has lost its first master", [node({ index: 1 }), agent]],
])("the secrets of a cluster %s can't be read, which is no failure", async (_, nodes) => {
  await using given = await open(nodes);
  expect((await failureOf(given.connections.connect(agent, signal))).id).toBe("key-missing");
  expect(given.connections.problem()).toBe("the cluster has no first master");
  expect(given.told).toEqual([]);
});

test("-v says why the secrets could not be read", async () => {
  await using given = await open([node({}), agent]);
  await failureOf(given.connections.connect(agent, signal));
  const reason = `The cluster's SSH key cannot be read: the file does not exist.`;
  expect(given.connections.problem()).toBe(reason);
  expect(given.told).toEqual([`-v: Cannot read the cluster's secrets: ${reason}`]);
});

test("once they are closed, they connect to no node", async () => {
  await using given = await open([agent]);
  await given.connections[Symbol.asyncDispose]();
  const failure = await failureOf(given.connections.connect(agent, signal));
  expect(failure.message).toBe("The cluster's connections are closed.");
});
