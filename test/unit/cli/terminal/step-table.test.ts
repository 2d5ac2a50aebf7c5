import { expect, test } from "bun:test";
import { StepTable } from "../../../../src/cli/terminal/live-area.ts";

const done = { text: "done", hasFailed: false };

test("the time of a title runs while one of its steps does, and stands still when the last has ended", () => {
  const table = new StepTable();
  const { entry: first, isFirst } = table.begin("Prepare", "agent_0", 1000);
  const { entry: second, isFirst: isSecondFirst } = table.begin("Prepare", "agent_1", 1500);
  expect([isFirst, isSecondFirst]).toEqual([true, false]);
  table.end(first, done, 2000);
  expect(table.summaries(5000)).toMatchObject([
    { title: "Prepare", active: [{ subject: "agent_1" }], ended: 1, ms: 4000 },
  ]);
  expect(table.isIdle).toBe(false);
  table.end(second, { text: "failed", hasFailed: true }, 6000);
  expect(table.summaries(9000)).toMatchObject([{ ended: 2, failed: 1, outcome: "", ms: 5000 }]);
  expect(table.isIdle).toBe(true);
});

test("a step ends once; a title without a step under way can be forgotten", () => {
  const table = new StepTable();
  const { entry: launch } = table.begin("Launch", undefined, 0);
  table.end(launch, { text: "2 machines", hasFailed: false }, 100);
  table.end(launch, { text: "again", hasFailed: true }, 900);
  expect(table.summaries(900)).toMatchObject([
    { ended: 1, failed: 0, outcome: "2 machines", ms: 100 },
  ]);
  table.begin("Install", undefined, 100);
  table.forgetEnded();
  expect(table.summaries(900).map(({ title }) => title)).toEqual(["Install"]);
});
