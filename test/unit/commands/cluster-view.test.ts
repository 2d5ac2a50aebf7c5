import { expect, test } from "bun:test";
import { clusterView } from "../../../src/commands/cluster-view.ts";
import { exampleCluster } from "../../support/install-example.ts";

test("a cluster from the future has no age yet, and one that is over has no time left", () => {
  const nowMs = Date.parse("2026-01-01T12:00:00Z");
  const cluster = {
    ...exampleCluster([], "oss"),
    createdAt: new Date(nowMs + 60_000),
    expiresAt: new Date(nowMs - 60_000),
  };
  expect(clusterView(cluster, nowMs)).toMatchObject({ ageSeconds: 0, secondsLeft: 0 });
});
