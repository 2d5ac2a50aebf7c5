import type { Backend } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { type CreateRequest, creationLimit } from "../../../../src/cluster/create/create-request.ts";
import { planMachines } from "../../../../src/cluster/create/plan-machines.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

test("a backend whose clusters end at a time of their own takes no lifetime", async () => {
  const request = { clusterId: "base", lifetimeMs: 1 } as CreateRequest<never>;
  const planning = planMachines(
    request,
    { backend: { name: "cloud" } as Backend<never>, install: undefined },
    neverAborted,
  );
  expect(await failureOf(planning)).toMatchObject({ id: "bad-usage", hint: "Leave out `lifetime`." });
});

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
