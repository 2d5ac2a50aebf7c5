import { expect, test } from "bun:test";
import { assertIdIsFree, clusterExists } from "../../../../../src/backend/cloud/launch/network.ts";
import type { MachineReading } from "../../../../../src/backend/cloud/read-machines.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");
const after = (ms: number): Date => new Date(nowMs + ms);

test.each([
  ["in an hour and a second", 3_601_000, " It ends 13:00 UTC (in 1 h)."],
  ["now", 0, " It ends 12:00 UTC (in 0 s)."],
  ["a minute ago", -60_000, " It ends 11:59 UTC (1 min ago)."],
])("of a cluster that ends %s, the end is named", (_, leftMs, end) => {
  const { message } = clusterExists({
    clusterId: "a",
    region: "us-west-2",
    expiresAt: after(leftMs),
    nowMs,
  });
  expect(message).toEndWith(end);
});

const machine = {
  clusterId: "a",
  creationId: "one",
  state: "running",
  isShuttingDown: false,
  isInItsGroup: true,
  launchedAt: after(-3 * 3_600_000),
  expiresAt: after(60_000),
};

test.each([
  ["runs", {}, true],
  ["ends this very moment", { expiresAt: after(0) }, true],
  ["has no deadline", { expiresAt: undefined }, true],
  ["is of another cluster", { clusterId: "b" }, false],
  ["is about to be removed", { creationId: "leaving" }, false],
  ["has ended", { state: "ended" }, false],
  ["is shutting down", { isShuttingDown: true }, false],
  ["is past its deadline", { expiresAt: after(-1) }, false],
  ["was launched two hours ago", { expiresAt: after(-1), launchedAt: after(-2 * 3_600_000) }, true],
  ["is not in its cluster's group", { isInItsGroup: false }, true],
  [
    "is past its deadline outside of its cluster's group",
    { isInItsGroup: false, expiresAt: after(-1), launchedAt: after(-1) },
    false,
  ],
])("a machine that %s holds the id: %p", (_, changes, isHeld) => {
  const machines = [{ ...machine, ...changes }] as unknown as MachineReading["machines"];
  const check = () =>
    assertIdIsFree({ machines }, { clusterId: "a", region: "r", nowMs, leaving: ["leaving"] });
  if (isHeld) expect(check).toThrow('"a"');
  else expect(check).not.toThrow();
});
