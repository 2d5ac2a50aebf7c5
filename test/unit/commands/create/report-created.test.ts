import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import type { Context, Result } from "../../../../src/cli/command.ts";
import {
  describeCreated,
  finishCreated,
  keptNote,
} from "../../../../src/commands/create/report-created.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../../support/install-example.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");

function open(input: object = {}) {
  const [told, results]: [string[], Result[]] = [[], []];
  const context = {
    clock: { now: () => nowMs },
    environment: {},
    signal: neverAborted,
    progress: {
      note: (text: string) => void told.push(text),
      timings: () => [{ title: "Launch", ms: 1_250 }],
    },
    output: { result: (result: Result) => void results.push(result) },
  } as unknown as Context;
  const created = { kind: cloudKind, cluster, input: { wait: false, summary: false, ...input } };
  return { told, results, context, created };
}

const cluster: ClusterRecord = {
  ...exampleCluster([], "oss"),
  createdAt: new Date(nowMs - 300_000),
  expiresAt: new Date(nowMs + 7_140_000),
  maximumCost: 0.5,
};
const started = "The installation has started";

test("says what the nodes do, when they end and what they cost", () => {
  const { told, created, context } = open();
  describeCreated(created.cluster, started, context);
  expect(told).toEqual([
    "The installation has started: 0 masters, 0 agents, 0 public agents.",
    "The cluster ends 13:59 UTC (in 1 h 59 min).",
    "The cost is at most $0.50; storage, public addresses and licensed images cost extra.",
  ]);
  describeCreated(exampleCluster([], "oss"), started, context);
  expect(told.slice(3)).toEqual([
    "The installation has started: 0 masters, 0 agents, 0 public agents.",
  ]);
});

test("what is next is to wait, in the cluster's place", async () => {
  const { told, results, created, context } = open({ region: "eu-west-1" });
  await finishCreated(created, async () => Promise.reject(new Error("not used")), context);
  const next = "cluster-cloud wait --cluster-id example --cloud-region eu-west-1";
  expect(told).toEqual([`Next: ${next}`]);
  expect(results).toMatchObject([
    { text: "example", data: { next, phases: [{ title: "Launch", seconds: 1.3 }] } },
  ]);
  expect(results[0]?.data).not.toHaveProperty("ready");
});

test("after the wait, what is next is to use the cluster", async () => {
  const { told, results, created, context } = open({ wait: true });
  await finishCreated(created, async () => {}, context);
  const next = "cluster-cloud run --cluster-id example bash";
  expect(told).toEqual([
    'Cluster "example" is ready after 0 s, 5 min after its creation.',
    `Next: ${next}`,
  ]);
  expect(results).toMatchObject([{ text: "example", data: { ready: true, next } }]);
});

test.each([cloudKind, containerKind])(
  "after a wait that failed, the cluster is kept, and both are said",
  async (kind) => {
    const { told, results, created, context } = open({ wait: true });
    const failing = finishCreated(
      { ...created, kind },
      async () => Promise.reject(new Error("no")),
      context,
    );
    expect((await failureOf(failing)).message).toBe("no");
    const name = kind === cloudKind ? "cluster-cloud" : "cluster-container";
    const end =
      kind === cloudKind
        ? ["It ends 13:59 UTC"]
        : [`\n    Remove it: ${name} destroy --cluster-id example`];
    for (const text of [
      'Cluster "example" is kept.',
      `\n    Save its logs: ${name} logs --cluster-id example\n`,
      ...end,
    ])
      expect(told[0]).toContain(text);
    expect(results).toMatchObject([
      { data: { ready: false, next: `${name} logs --cluster-id example` } },
    ]);
  },
);

test.each([
  [true, "### Cluster ready\n", ["| Ready after | `6 min` |"]],
  [false, "### Cluster created\n", []],
])(
  "the summary is one table, with the time until the nodes were ready (%p)",
  async (wait, title, ready) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "summary.md");
    const { created, context } = open({ wait, summary: true });
    const time = { nowMs };
    const clock = { ...context.clock, now: () => time.nowMs };
    const waiting = async (): Promise<void> => void (time.nowMs += 90_000);
    await finishCreated(created, waiting, {
      ...context,
      clock,
      environment: { GITHUB_STEP_SUMMARY: path },
    });
    const text = await readFile(path, "utf8");
    expect(text).toStartWith(title);
    expect(text.split("\n").slice(6)).toEqual([
      "| Nodes | `0 masters, 0 agents, 0 public agents` |",
      expect.stringContaining("| Ends | `13:59 UTC (in 1 h 5"),
      "| Cost | `at most $0.50` |",
      ...ready,
      "| Phases | `Launch 1.3 s` |",
      "",
      "",
    ]);
  },
);

test.each([
  [cloudKind, undefined, "It ends by itself, two hours after its creation."],
  [cloudKind, cluster.expiresAt, "It ends 13:59 UTC (in 1 h 59 min)."],
  [containerKind, undefined, undefined],
  [containerKind, cluster.expiresAt, "It ends 13:59 UTC (in 1 h 59 min)."],
])("a cluster that is kept says when it ends, if it does", (kind, expiresAt, end) => {
  const note = keptNote(
    kind,
    { id: "example", expiresAt, scope: {}, error: undefined },
    open().context,
  );
  expect(/It ends.*/.exec(note)?.[0]).toBe(end);
  expect(note.includes("Remove it: ")).toBe(kind === containerKind);
});

const tooLate = new ClusterError("deadline-passed", "too late");
const broken = new ClusterError("install-failed", "broken");

test.each([
  ["an interruption", AbortSignal.abort(), new Error("interrupted"), true],
  ["the time limit", neverAborted, tooLate, true],
  ["an installation that failed", neverAborted, broken, false],
])("after %s, the note says how to go on if that helps", (_what, signal, error, canGoOn) => {
  const kept = { id: "example", scope: {}, error };
  const note = keptNote(containerKind, kept, { ...open().context, signal });
  expect(note.includes("Continue to wait: cluster-container wait --cluster-id example")).toBe(
    canGoOn,
  );
});
