/** What doctor reports as remains of a cluster, depending on its resources and its folder on this machine. */

import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { passageThrough } from "../../../../src/backend/container/engine/passage.ts";
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { toClusters } from "../../../../src/backend/container/records/records.ts";
import { leftovers } from "../../../../src/backend/shared/foreign-resource.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
} from "../../../../src/store/creation-folder.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const creationId = "0123456789abcdef";
const clock = scriptedClock(Date.parse("2026-01-01T12:00:00Z"));

/** doctor's outcome for a cluster that has only a network. */
async function wordOnNetwork(root: string): Promise<string> {
  const unknown = {
    counts: undefined,
    variant: undefined,
    distribution: undefined,
    reach: "engine",
  } as const;
  const network = { clusterId: "a", creationId, ...unknown };
  const inventory = { containers: [], networks: [network], abandoned: new Set<string>() };
  const outcome = await leftovers({
    clusters: toClusters(inventory, { root, passageTo: passageThrough(engineKinds.docker, {}) }),
    root,
    clock,
    removal: (clusterId) => `destroy ${clusterId}`,
    troubleOf: async () => Promise.resolve(undefined),
  });
  return outcomeText(outcome);
}

test("a network without a creation on this computer is a remainder", async () => {
  await using folder = await scratchFolder();
  expect(await wordOnNetwork(folder.path)).toBe(
    'warn: Left over: cluster "a" (it has no nodes). → Remove those that you no longer need: destroy a',
  );
});

test("a network is a remainder after the end of its creation, and not before", async () => {
  await using folder = await scratchFolder();
  const directory = creationDirectory(folder.path, "a", creationId);
  await beginCreation(directory, "a", creationId);
  expect(await wordOnNetwork(folder.path)).toBe("pass: None");
  await endCreation(directory, "finished");
  expect(await wordOnNetwork(folder.path)).toContain('cluster "a" (it has no nodes)');
});

const running = { state: "running" };
const ended = { state: "ended" };

/** What is said about one cluster, "a". */
async function lookAt(
  facts: { readonly directory: string; readonly nodes: readonly object[] },
  root: string,
  trouble: string | undefined,
) {
  const cluster = { id: "a", creationId, ...facts } as unknown as ClusterRecord;
  return leftovers({
    clusters: [cluster],
    root,
    clock,
    removal: () => "destroy a",
    troubleOf: async () => Promise.resolve(trouble),
  });
}

test.each([
  ["none runs", [ended, ended], undefined, "none of its nodes is running"],
  ["one runs", [ended, running], undefined, undefined],
  ["one runs with a problem", [running], "its disk is full", "its disk is full"],
  ["there are none, and a problem", [], "its network is gone", "its network is gone"],
])("whether a cluster is a remainder if, of its nodes, %s", async (_, nodes, trouble, what) => {
  await using folder = await scratchFolder();
  const directory = creationDirectory(folder.path, "a", creationId);
  // An older creation of the same id that was cut off has a record of its own.
  const older = creationDirectory(folder.path, "a", "fedcba9876543210");
  await beginCreation(older, "a", "fedcba9876543210");
  await endCreation(older, "abandoned");
  const outcome = await lookAt({ directory, nodes }, folder.path, trouble);
  const warning = `warn: Left over: cluster "a" (${what}). → Remove those that you no longer need: destroy a`;
  expect(outcomeText(outcome)).toBe(what === undefined ? "pass: None" : warning);
});

test.each([
  ["abandoned", "its create was interrupted"],
  ["in-use", "its once was killed"],
] as const)(
  "a cluster that was left %s is a remainder, whatever its nodes do",
  async (state, what) => {
    await using folder = await scratchFolder();
    const directory = creationDirectory(folder.path, "a", creationId);
    await beginCreation(directory, "a", creationId);
    await endCreation(directory, state);
    const record = creationFiles(directory).creation;
    // Its program has ended.
    await writeFile(
      record,
      (await readFile(record, "utf8")).replace(/"startedAt": "[^"]*"/, '"startedAt": "boot:1"'),
    );
    const outcome = await lookAt({ directory, nodes: [running] }, folder.path, undefined);
    expect(outcome.message).toBe(`Left over: cluster "a" (${what}).`);
  },
);

// Shows R41.
test("a cluster whose time is over is named, with its end, and not as one that needs to be destroyed", async () => {
  const clusterOf = (id: string, ends: string) =>
    ({
      id,
      directory: "/nowhere",
      nodes: [ended],
      expiresAt: new Date(ends),
    }) as unknown as ClusterRecord;
  const outcome = await leftovers({
    clusters: [clusterOf("a", "2026-01-01T11:50:00Z"), clusterOf("b", "2026-01-01T12:10:00Z")],
    root: "/nowhere",
    clock,
    removal: (id) => `destroy ${id}`,
    troubleOf: async () => Promise.resolve(undefined),
  });
  expect(outcomeText(outcome)).toBe(
    'warn: Left over: cluster "b" (none of its nodes is running). Not removed yet: ' +
      'cluster "a", which ended 11:50 UTC (10 min ago). → Remove those that you no longer need: destroy b; Run the list command, which removes what is left',
  );
});
