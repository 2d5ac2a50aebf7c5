import { expect, test } from "bun:test";
import { clusterView, durationText, tableText } from "../../../src/commands/cluster-view.ts";
import { exampleCluster } from "../../support/install-example.ts";

test.each([
  [0, "0 s"],
  [59, "59 s"],
  [60, "1 min"],
  [3599, "59 min"],
  [3600, "1 h 0 min"],
  [7140, "1 h 59 min"],
])("%d seconds are shown as %s", (seconds, shown) => {
  expect(durationText(seconds)).toBe(shown);
});

test("a cluster from the future has no age yet, and one that is over has no time left", () => {
  const nowMs = Date.parse("2026-01-01T12:00:00Z");
  const cluster = {
    ...exampleCluster([], "oss"),
    createdAt: new Date(nowMs + 60_000),
    expiresAt: new Date(nowMs - 60_000),
  };
  expect(clusterView(cluster, nowMs)).toMatchObject({ ageSeconds: 0, secondsLeft: 0 });
});

test("columns are as wide as their widest cell, and no cell begins a new line", () => {
  const cells = [
    ["ID", "STATE"],
    ["nightly", "run\nning", "x"],
  ];
  expect(tableText(cells)).toBe("ID       STATE\nnightly  run ning  x");
});
