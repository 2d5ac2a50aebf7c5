import { expect, test } from "bun:test";
import { syncCheckout } from "../../../src/cluster/sync-checkout.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import type { Checkout } from "../../../src/platform/checkout/checkout.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test.each([
  ["that has only agents", [{ role: "agent", state: "running" }]],
  ["whose masters have ended", [{ role: "master", state: "ended" }]],
])("nothing can be synced to a cluster %s", async (_, nodes) => {
  const { progress, steps } = recordingProgress();
  const cluster = exampleCluster(nodes as NodeRecord[], "oss");
  const runtime = { connections: {} as never, progress };
  const failure = await failureOf(
    syncCheckout({ ...runtime, signal: neverAborted }, cluster, {} as Checkout),
  );
  expect(failure).toMatchObject({ id: "node-not-found", facts: { cluster: "example" } });
  expect(failure.message).toBe('Cluster "example" has no running master to sync to.');
  expect(steps).toEqual([]);
});
