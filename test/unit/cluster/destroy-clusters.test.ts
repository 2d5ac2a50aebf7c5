import type { Backend } from "../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import {
  assertNoSnapshots,
  destroyCluster,
  destroyEach,
} from "../../../src/cluster/destroy-clusters.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { ClusterName, ClusterRecord } from "../../../src/model/cluster-record.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const creation = (creationId: string): ClusterRecord => ({
  ...exampleCluster([], "oss"),
  creationId,
});
const left = new ClusterError("cloud-failed", "A network is left.");

/** A backend that finds these clusters in turn, and then none. */
function backendWith(
  found: readonly ClusterRecord[],
  remove: (name: ClusterName) => Promise<void>,
): Backend<unknown> {
  const rest = [...found];
  return { name: "cloud", find: async () => rest.shift(), remove } as unknown as Backend<unknown>;
}

/** Destroys the cluster of each of these creations. */
async function destroy(found: readonly ClusterRecord[]) {
  const removed: string[] = [];
  const { progress, steps, told } = recordingProgress();
  const backend = backendWith(found, async ({ creationId }) => void removed.push(creationId));
  await destroyCluster({ progress, environment: {}, signal: neverAborted }, backend, "example");
  return { removed, steps, told };
}

test("what another creation of the same id has left is removed too", async () => {
  const { removed, steps, told } = await destroy([creation("c1"), creation("c2")]);
  expect(removed).toEqual(["c1", "c2"]);
  expect({ steps, told }).toEqual({
    steps: ["Destroy example: done", "Destroy example: done"],
    told: [],
  });
});

test("a cluster that is still listed after its removal is not removed again", async () => {
  expect((await destroy([creation("c1"), creation("c1"), creation("c1")])).removed).toEqual(["c1"]);
});

/** Destroys a cluster, which fails. `isInterrupted`: because the user interrupts it. */
async function fail(isInterrupted: boolean) {
  const stop = new AbortController();
  const { progress, steps, told } = recordingProgress();
  const backend = backendWith([], async () => {
    if (isInterrupted) stop.abort(left);
    throw left;
  });
  expect(
    await failureOf(
      destroyEach({ progress, environment: {}, signal: stop.signal }, backend, [creation("c1")]),
    ),
  ).toBe(left);
  expect(steps).toEqual(["Destroy example: failed"]);
  return told;
}

test("only after an interruption, the user is told to run the command again", async () => {
  expect(await fail(false)).toEqual([]);
  expect(await fail(true)).toEqual([
    'Cluster "example" may be partly removed: run the same command again.',
  ]);
});

test("a cluster with snapshots is not removed to be replaced", async () => {
  const backend = { local: { snapshots: { list: async () => [{ name: "clean" }] } } };
  const failure = await failureOf(
    assertNoSnapshots(backend as unknown as Backend<unknown>, creation("c1"), neverAborted),
  );
  expect(failure.id).toBe("bad-usage");
  expect(failure.message).toContain("clean");
});
