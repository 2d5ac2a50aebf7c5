/** What a report says came of the commands on a cluster. */
import { expect, test } from "bun:test";
import { reportParts } from "../../../../src/cluster/report/make-report.ts";
import { renderReport } from "../../../../src/cluster/report/render-report.ts";
import type { ClusterEvent, NewEvent } from "../../../../src/model/event.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const start = Date.parse("2026-11-28T10:00:00Z");
const event = (seconds: number, given: NewEvent): ClusterEvent => ({
  ...given,
  at: new Date(start + seconds * 1000).toISOString(),
});
const run = { kind: "run", command: "./test.sh", nodes: ["master_0"] } as const;
const begun = event(60, { ...run, course: "begun" });
const good = event(70, { ...run, course: "done", status: 0 });
const bad = event(70, { ...run, course: "failed", status: 1 });
const noticed = event(71, { kind: "result", title: "run", isGood: false, text: "a unit failed" });
const created = event(50, { kind: "result", title: "create", isGood: false, text: "no disk" });

const partsOf = async (events: readonly ClusterEvent[]) =>
  reportParts(
    {
      cluster: undefined,
      clusterId: "nightly",
      directory: "/x",
      file: "/y",
      xml: [],
      texts: [],
      facts: [],
      commands: [],
      events,
      nowMs: start + 200_000,
    },
    neverAborted,
  );

test.each<[string, readonly ClusterEvent[], string]>([
  ["a command that succeeded", [begun, good], ": the last command succeeded"],
  ["one that failed", [created, begun, bad, begun], ": the last command failed"],
  ["one during which something was noticed", [begun, good, noticed], ": failed"],
  [
    "a later one that succeeded",
    [begun, good, noticed, begun, good],
    ": the last command succeeded",
  ],
  ["a creation that failed", [created], ": failed"],
  ["a command that has not ended", [begun], ""],
  ["one that has not ended after one that succeeded", [begun, good, begun], ""],
])("the title says what came of %s", async (_, events, verdict) => {
  expect((await partsOf(events)).title).toBe(`Cluster nightly${verdict}`);
});

test("errors from before the command are shown as those, where there are none since", async () => {
  const line = { ms: start, node: "master_0", unit: "app", text: "error: no port" };
  const parts = { ...(await partsOf([begun, bad])), nodes: ["master_0"], lines: [line] };
  expect(await renderReport(parts, neverAborted)).toContain(
    "First error of each node; none since the command began",
  );
});

test("an interrupt ends the work on a page", async () => {
  const parts = await partsOf([begun, good]);
  const stop = new AbortController();
  const line = { ms: start, node: "master_0", unit: "app", text: "error" };
  const lines = Array.from({ length: 100_000 }, () => line);
  const rendering = renderReport({ ...parts, lines }, stop.signal);
  setImmediate(() => stop.abort(new Error("Ctrl-C")));
  expect(rendering).rejects.toThrow("Ctrl-C");
});

test("a command fails for what was noticed while it ran, whatever its status", async () => {
  const parts = await partsOf([begun, good, noticed]);
  expect(parts.result).toBe(
    "./test.sh\nmaster_0: status 0: but something went wrong on the nodes while it ran\na unit failed",
  );
  expect(await renderReport(parts, neverAborted)).toMatch(
    /<rect class="bad"[^>]*><title>master_0: .\/test.sh, status 0: but/,
  );
});
