import { expect, test } from "bun:test";
import { type Observed, evidenceOf } from "../../../../src/cluster/faults/fault-evidence.ts";
import type { FaultRequest } from "../../../../src/cluster/faults/fault-request.ts";

const observed = (changes: Partial<Observed> = {}): Observed => ({
  faults: [],
  clockMs: 10_000,
  hereMs: 10_000,
  freeBytes: 5e9,
  linksMs: new Map([["10.0.0.2", 1]]),
  ...changes,
});
const links = (ms: number | undefined): Partial<Observed> => ({ linksMs: new Map([["10.0.0.2", ms]]) });

const durationMs = 60_000;
const cut: FaultRequest = { kind: "partition", between: ["all"], durationMs };
const slow: FaultRequest = { kind: "network", nodes: ["all"], delayMs: 200, durationMs };
const late: FaultRequest = { kind: "clock", nodes: ["all"], offsetMs: -3600_000, durationMs };
const full: FaultRequest = { kind: "disk", nodes: ["all"], folder: "/", durationMs };

test.each<[string, FaultRequest, Partial<Observed>, string | undefined]>([
  ["a cut network", cut, links(undefined), "0 of 1 ping answered, before: 1 of 1 ping answered"],
  ["a whole network", cut, {}, undefined],
  ["a slow network", slow, links(201), "a round trip takes 201 ms, before: a round trip takes 1 ms"],
  ["a lossy network", slow, links(undefined), "no ping is answered, before: a round trip takes 1 ms"],
  ["no other node", slow, { linksMs: new Map() }, "no other node to ping, before: a round trip takes 1 ms"],
  ["a fast network", slow, links(150), undefined],
  [
    "a late clock",
    late,
    { clockMs: -3_590_000, hereMs: 11_000 },
    "the clock is 3601.0 s behind this computer's, before: the clock is 0.0 s ahead of",
  ],
  ["a right clock", late, { clockMs: 11_000, hereMs: 11_000 }, undefined],
  ["a full disk", full, { freeBytes: 4096 }, "0.0 MB are free, before: 5000.0 MB are free"],
  ["an empty disk", full, {}, undefined],
])("%s: %j", (_, request, after, evidence) => {
  const judge = () => evidenceOf(request, [observed()], [observed(after)]);
  if (evidence === undefined) expect(judge).toThrow(expect.objectContaining({ id: "remote-command-failed" }));
  else expect(judge()).toStartWith(evidence);
});

test.each<[FaultRequest, Partial<Observed>]>([
  [late, { clockMs: -3_590_000 }],
  [full, { freeBytes: 4096 }],
])("a fault that shows on one node only is refused: %j", (request, after) => {
  const both = [observed(), observed()];
  expect(() => evidenceOf(request, both, [observed(after), observed()])).toThrow("does not show");
  expect(evidenceOf(request, both, [observed(after), observed(after)])).toContain(", before: ");
});
