import { expect, test } from "bun:test";
import type { Group, Machine } from "../../../../src/backend/cloud/read-machines.ts";
import { findLeftovers } from "../../../../src/backend/cloud/remove-expired.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");
const inMs = (ms: number): Date => new Date(nowMs + ms);

const machine = {
  id: "i-1",
  state: "running",
  isShuttingDown: false,
  isInItsGroup: true,
  groupIds: ["sg-1"],
  expiresAt: inMs(-1),
  launchedAt: inMs(-2 * 3_600_000 - 1),
};
const group = { id: "sg-2", expiresAt: inMs(-1) };

function leftovers(machines: readonly object[], groups: readonly object[]): readonly string[] {
  // Only the fields that it reads.
  const inventory = {
    machines: machines as unknown as Machine[],
    groups: groups as unknown as Group[],
  };
  const left = findLeftovers(inventory, nowMs);
  return [...left.machines, ...left.groups].map(({ id }) => id);
}

// Shows R108.
test.each([
  ["is past its deadline", true, {}],
  ["was stopped after its deadline", true, { state: "stopped" }],
  // At that moment it still holds its cluster's id.
  ["is just at its deadline", false, { expiresAt: inMs(0) }],
  ["has time left", false, { expiresAt: inMs(1) }],
  ["has no deadline", false, { expiresAt: undefined }],
  // Anyone who may tag can change the deadline in the tag.
  ["was launched just two hours ago", false, { launchedAt: inMs(-2 * 3_600_000) }],
  ["was launched at an unknown time", false, { launchedAt: undefined }],
  ["is terminating already", false, { isShuttingDown: true }],
  ["has ended", false, { state: "ended" }],
  ["isn't in its cluster's security group", false, { isInItsGroup: false }],
])("a machine that %s is a leftover: %p", (_, isLeftover, changes) => {
  expect(leftovers([{ ...machine, ...changes }], [])).toEqual(isLeftover ? ["i-1"] : []);
});

// Shows R108.
test.each([
  ["is past its deadline", true, {}, []],
  ["is just at its deadline", false, { expiresAt: inMs(0) }, []],
  ["has no deadline", false, { expiresAt: undefined }, []],
  [
    "is used by a machine",
    false,
    {},
    [{ ...machine, groupIds: ["sg-0", "sg-2"], isShuttingDown: true }],
  ],
  [
    "was used by a machine that has ended",
    true,
    {},
    [{ ...machine, groupIds: ["sg-2"], state: "ended" }],
  ],
])("a security group that %s is a leftover: %p", (_, isLeftover, changes, machines) => {
  expect(leftovers(machines, [{ ...group, ...changes }])).toEqual(isLeftover ? ["sg-2"] : []);
});
