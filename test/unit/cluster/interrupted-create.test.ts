/** What the commands say about a cluster whose `create` was killed. */
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "bun:test";
import type { Backend } from "../../../src/backend/contract.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { openConnections, withAdvice } from "../../../src/cluster/connections.ts";
import { runOnNode, type RunRequest } from "../../../src/cluster/run-on-node.ts";
import { type NodesRun, runOnNodes } from "../../../src/cluster/run-on-nodes.ts";
import { waitForCluster } from "../../../src/cluster/wait-for-cluster.ts";
import { ClusterError } from "../../../src/errors.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
} from "../../../src/store/creation-folder.ts";
import { passedMs, systemClock } from "../../../src/system/runtime.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const { signal } = new AbortController();
const says: string =
  "The create of this cluster was interrupted. Repeat it, which first removes what is left, or run the destroy command.";
const node = {
  id: "i-0",
  role: "master",
  index: 0,
  ssh: { host: "127.0.0.1", port: 1, user: "root" },
} as NodeRecord;

/** A cluster without known hosts. Its `create` was killed, or is still running. */
async function openCluster(wasKilled: boolean) {
  const folder = await scratchFolder();
  const creationId = "0123456789abcdef";
  const directory = creationDirectory(folder.path, "example", creationId);
  await beginCreation(directory, "example", creationId);
  const files = creationFiles(directory);
  if (wasKilled) {
    const creation = await readFile(files.creation, "utf8");
    await writeFile(
      files.creation,
      creation.replace(/"startedAt": "[^"]*"/, '"startedAt": "boot:1"'),
    );
  }
  await writeFile(files.privateKey, generateKeyPair("login").privateKey, { mode: 0o600 });
  const cluster = { ...exampleCluster([node], "oss"), creationId, directory };
  const { progress, told } = recordingProgress();
  return { cluster, told, runtime: { environment: {}, clock: systemClock, progress }, folder };
}

test.each<[boolean, readonly string[]]>([
  [true, [says]],
  [false, []],
])("run says so if there is no running master (killed: %p)", async (wasKilled, hints) => {
  const { cluster, runtime, folder } = await openCluster(wasKilled);
  await using _ = folder;
  const request = { login: {}, variables: {} } as unknown as RunRequest;
  const failure = await failureOf(
    runOnNode({ ...runtime, onConnecting: () => {}, signal }, cluster, request),
  );
  expect(failure.id).toBe("node-not-found");
  expect([failure.hint].filter((hint) => hint === says)).toEqual([...hints]);
});

test.each([
  [true, "connection-failed", "own", says],
  [true, "node-not-found", undefined, says],
  [true, "key-missing", "own", "own"],
  [false, "connection-failed", undefined, expect.stringContaining("inspect command")],
  [false, "connection-failed", "own", "own"],
  [false, "node-not-found", undefined, undefined],
] as const)(
  "advice (killed: %p) on %s with the hint %p: %p",
  async (wasKilled, id, hint, advice) => {
    const { cluster, folder } = await openCluster(wasKilled);
    await using _ = folder;
    const error = new ClusterError(id, "It failed.", {
      transient: true,
      ...(hint !== undefined && { hint }),
    });
    expect(await withAdvice(error, cluster.directory)).toMatchObject({
      id,
      hint: advice,
      transient: true,
    });
  },
);

test("a login that fails says so", async () => {
  const { cluster, runtime, folder } = await openCluster(true);
  await using _ = folder;
  await using connections = openConnections(cluster.directory, runtime);
  const failure = await failureOf(connections.connect(node, signal));
  expect(failure).toMatchObject({ id: "connection-failed", transient: true, hint: says });
});

test.each<[boolean, readonly string[]]>([
  [true, [says]],
  [false, []],
])("wait says so before it waits (killed: %p)", async (wasKilled, warnings) => {
  const { cluster, told, runtime, folder } = await openCluster(wasKilled);
  await using _ = folder;
  const running = { ...cluster, nodes: [{ ...node, state: "running" as const }] };
  const backend = { name: "cloud", find: async () => running } as unknown as Backend<unknown>;
  const deadlineMs = passedMs(systemClock) + 200;
  const request = { clusterId: cluster.id, login: undefined, skipHttpChecks: true, deadlineMs };
  expect((await failureOf(waitForCluster({ ...runtime, signal }, backend, request))).id).toBe(
    "deadline-passed",
  );
  expect(told.filter((text) => text === says)).toEqual([...warnings]);
});

test("run on all nodes says so, also if it works", async () => {
  const { cluster, told, runtime, folder } = await openCluster(true);
  await using _ = folder;
  const request = { words: ["true"], login: {}, nodes: [], fetches: [] } as unknown as NodesRun;
  expect(
    await runOnNodes({ ...runtime, onConnecting: () => {}, signal }, cluster, request),
  ).toEqual([]);
  expect(told).toEqual([says]);
});

test.each<[string, readonly string[]]>([
  ["text", [`Warning: ${says}`]],
  ["json", [`Warning: ${says}`]],
  ["names", []],
])("inspect says so, but not for completion (--output %s)", async (format, warnings) => {
  const { cluster, folder } = await openCluster(true);
  await using _ = folder;
  const backend = { name: "container", find: async () => ({ ...cluster, nodes: [] }) } as const;
  const words = `inspect -c example --output ${format}`;
  const ran = await runCommandLine(words, { kind: containerKind, backend, nowMs: 0 });
  expect(ran.told).toEqual([...warnings]);
});

test("what a killed once has left was complete", async () => {
  const { cluster, runtime, folder } = await openCluster(false);
  await using _ = folder;
  await endCreation(cluster.directory, "in-use");
  const { creation } = creationFiles(cluster.directory);
  await writeFile(
    creation,
    (await readFile(creation, "utf8")).replace(/"startedAt": "[^"]*"/, '"startedAt": "boot:1"'),
  );
  await using connections = openConnections(cluster.directory, runtime);
  const failure = await failureOf(connections.connect(node, signal));
  expect(failure.hint).not.toBe(says);
});
