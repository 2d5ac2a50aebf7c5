import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { Backend, CloudPart } from "../../../src/backend/contract.ts";
import type { HandOver } from "../../../src/cluster/export-cluster.ts";
import { importCluster } from "../../../src/cluster/import-cluster.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const ssh = { host: "192.0.2.1", port: 22, user: "admin" };
const node = (index: number, changes: object) =>
  ({ id: `i-${index}`, role: "agent", index, state: "running", ssh, ...changes }) as NodeRecord;

/** Imports a cluster of these nodes with a file that has no host key. */
async function failedImport(nodes: readonly NodeRecord[], parts: Partial<Backend<unknown>>) {
  await using scratch = await scratchFolder();
  const directory = join(scratch.path, "cluster");
  const cluster = { ...exampleCluster(nodes, "oss"), directory };
  const { id: clusterId, creationId } = cluster;
  const handOver: HandOver = {
    clusterId,
    creationId,
    region: "us-west-2",
    privateKey: "",
    hostKeys: new Map(),
  };
  const { progress, told } = recordingProgress();
  const runtime = { environment: {}, clock: systemClock, progress };
  const backend = {
    name: "cloud",
    find: async () => cluster,
    ...parts,
  } as unknown as Backend<unknown>;
  const failure = await failureOf(
    importCluster({ ...runtime, signal: neverAborted }, backend, handOver),
  );
  expect(existsSync(directory)).toBe(false);
  return { failure, told };
}

const cloud = {} as CloudPart;

test("clusters whose nodes only one machine can reach can't be imported", async () => {
  const { failure } = await failedImport([node(0, {})], { name: "vm" });
  expect(failure.id).toBe("bad-usage");
  expect(failure.message).toBe(
    "Clusters of this kind (vm) are reached from their own machine only.",
  );
});

test("if no node can be logged in to, the first failure is the reason", async () => {
  const { failure, told } = await failedImport([node(0, {}), node(1, {})], { cloud });
  expect(failure).toMatchObject({ id: "connection-failed", facts: { cluster: "example" } });
  expect(failure.message).toBe("The file has no host key for agent_0 at 192.0.2.1.");
  expect(failure.cause).toMatchObject({ message: failure.message });
  expect(failure.hint).toStartWith("Nothing was imported.");
  expect(told).toEqual([]);
});

test("nodes that have ended, or have no address, are not logged in to", async () => {
  const nodes = [node(0, { state: "ended" }), node(1, { ssh: { ...ssh, host: "" } })];
  const { failure } = await failedImport(nodes, { cloud });
  expect(failure.id).toBe("connection-failed");
  expect(failure.message).toBe(
    'Cluster "example" has no running node whose host key could be checked.',
  );
});
