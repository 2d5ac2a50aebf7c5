import { expect, test } from "bun:test";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import type { Context, Result } from "../../../../src/cli/command.ts";
import { reportCreated } from "../../../../src/commands/create/report-created.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../../support/install-example.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");

function report(changes: Partial<ClusterRecord>, input: object = {}) {
  const [told, results]: [string[], Result[]] = [[], []];
  const context = {
    clock: { now: () => nowMs },
    progress: { note: (text: string) => void told.push(text), timings: () => [{ title: "Launch", ms: 1_250 }] },
    output: { result: (result: Result) => void results.push(result) },
  } as unknown as Context;
  const request = { wait: false, summary: undefined, ...input };
  reportCreated(
    { ...exampleCluster([], "oss"), ...changes },
    { kind: cloudKind, input: request as never, happened: "The installation has started" },
    context,
  );
  return { told, result: results[0] };
}

test("says what the nodes do, when they end, what they cost, how long it took and what to do next", () => {
  const { told, result } = report({ expiresAt: new Date(nowMs + 7_200_000), maximumCost: 0.5 });
  expect(told).toEqual([
    "The installation has started: 0 masters, 0 agents, 0 public agents.",
    "The machines terminate automatically in 2 h 0 min, at 2026-01-01T14:00:00.000Z.",
    "The cost is at most $0.50; storage, public addresses and licensed images cost extra.",
    "Phases: Launch 1.3 s.",
    "Next: cluster-cloud wait --cluster-id example",
  ]);
  expect(result?.text).toBe("example");
});

test("says nothing of an end, of costs and of waiting where there is none", () => {
  const { told } = report({}, { wait: true });
  expect(told).toEqual([
    "The installation has started: 0 masters, 0 agents, 0 public agents.",
    "Phases: Launch 1.3 s.",
  ]);
});

test("the next command names a place that is not the default", () => {
  expect(report({}, { region: "eu-west-1" }).told.at(-1)).toEndWith(" --cluster-id example --cloud-region eu-west-1");
});
