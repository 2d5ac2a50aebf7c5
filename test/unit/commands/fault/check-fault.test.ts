import { expect, test } from "bun:test";
import { Problems } from "../../../../src/cli/options/problems.ts";
import { checkFault } from "../../../../src/commands/fault/check-fault.ts";

test.each<Partial<Parameters<typeof checkFault>[0]>>([
  { action: "network", nodes: ["agent_0"], delayMs: 10, durationMs: 60_000 },
  // That the duration is missing is a problem of the option.
  { action: "network", nodes: ["agent_0"], delayMs: 10 },
  { action: "list", nodes: [] },
  { action: "heal", nodes: ["agent_0"] },
  { nodes: ["agent_0"] },
])("%j has no problem", (values) => {
  const problems = new Problems("");
  checkFault(values, problems);
  expect(problems.all).toEqual([]);
});

test("options of random faults are refused elsewhere", () => {
  const problems = new Problems("");
  checkFault({ action: "heal", seed: 0, recoverMs: 1, only: [1], dryRun: true }, problems);
  expect(problems.all.map((each) => each.split(":")[0])).toEqual([
    "--dry-run",
    "--seed",
    "--recover",
    "--only",
  ]);
});

test.each(["heal", "list"] as const)(
  "options of kinds are refused by %s, which would concern all faults",
  (action) => {
    const problems = new Problems("");
    checkFault(
      { action, between: ["agent_0"], towards: [], oneWay: false, stall: true, until: "true" },
      problems,
    );
    expect(problems.all).toHaveLength(3);
    for (const problem of problems.all) expect(problem).toEndWith(`: not for ${action}`);
  },
);
