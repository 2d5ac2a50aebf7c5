import { expect, test } from "bun:test";
import { creationLimit } from "../../../../src/cluster/create/create-request.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

test.each([
  [{ deadlineMs: 1, lifetimeMs: undefined }, "exceeded its time limit"],
  [{ deadlineMs: 1, lifetimeMs: 60_000 }, "exceeded its time limit"],
  [{ deadlineMs: 60_000, lifetimeMs: 1 }, "took longer than its lifetime"],
])("a creation ends at its deadline, or when a lifetime would end its nodes: %j", async (times, message) => {
  using limit = creationLimit({ clusterId: "base", ...times }, scriptedClock());
  const { promise, resolve } = Promise.withResolvers<void>();
  limit.signal.addEventListener("abort", () => resolve());
  await promise;
  expect(limit.signal.reason).toMatchObject({ id: "deadline-passed", message: expect.stringContaining(message) });
});
