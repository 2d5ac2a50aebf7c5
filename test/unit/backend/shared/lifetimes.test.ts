import { runCommand } from "../../../../src/references.ts";
import { expect, test } from "bun:test";
import { endAfter, endFacts, endLine, isOver } from "../../../../src/backend/shared/lifetimes.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const clock = scriptedClock(Date.parse("2026-01-01T12:00:00.600Z"));

test("a cluster with a lifetime ends after it, in whole seconds", () => {
  expect(endAfter(90_500, clock)).toEqual(new Date("2026-01-01T12:01:31Z"));
  expect(endFacts(90_500, clock)).toEqual({ expiresAt: "2026-01-01T12:01:31.000Z" });
  expect(endLine(3_600_000, clock)).toEqual([
    "Ends",
    `13:00 UTC (in 1 h), or when you ${runCommand("destroy", "run")}`,
  ]);
});

test("a cluster without a lifetime ends when it is destroyed", () => {
  expect([endAfter(undefined, clock), endFacts(undefined, clock)]).toEqual([undefined, {}]);
  expect(endLine(undefined, clock)).toEqual(["Ends", `when you ${runCommand("destroy", "run")}`]);
  expect(isOver({}, clock)).toBe(false);
});
