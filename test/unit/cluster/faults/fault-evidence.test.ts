import { expect, test } from "bun:test";
import {
  assertCanShow,
  awaitEvidence,
  faultEvidence,
} from "../../../../src/cluster/faults/fault-evidence.ts";
import type { Observed } from "../../../../src/platform/faults/fault-kind.ts";
import type { FaultRequest } from "../../../../src/platform/faults/fault-kinds.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const free = (bytes: number): Pick<Observed, "measured"> => ({
  measured: new Map([
    ["free", String(bytes)],
    ["queue", "qdisc netem e1: delay 200ms rate 64Kbit"],
  ]),
});

const observed = (changes: Partial<Observed> = {}): Observed => ({
  clockMs: 10_000,
  hereMs: 10_000,
  ...free(5e9),
  linksMs: new Map([["10.0.0.2", 1]]),
  ...changes,
});
const links = (ms: number | undefined): Partial<Observed> => ({
  linksMs: new Map([["10.0.0.2", ms]]),
});

const runs = (word: string, pid?: number): Pick<Observed, "measured"> => ({
  measured: new Map([
    ...free(5e9).measured,
    ["process", word],
    ...(pid === undefined ? [] : [["pid", String(pid)] as const]),
  ]),
});

const durationMs = 60_000;
const dead: FaultRequest = { kind: "process", nodes: ["all"], unit: "etcd", durationMs };
const cut: FaultRequest = { kind: "partition", between: ["all"], durationMs };
const slow: FaultRequest = { kind: "network", nodes: ["all"], delayMs: 200, durationMs };
const late: FaultRequest = { kind: "clock", nodes: ["all"], offsetMs: -3600_000, durationMs };
const pressed: FaultRequest = { kind: "pressure", nodes: ["all"], cpuPercent: 90, durationMs };
const crowded: FaultRequest = { ...pressed, cpuPercent: undefined, memoryPercent: 80 };
const uses = (shares: Readonly<Record<string, number>>): Pick<Observed, "measured"> => ({
  measured: new Map(Object.entries(shares).map(([key, percent]) => [key, String(percent)])),
});
const full: FaultRequest = { kind: "disk", nodes: ["all"], folder: "/", durationMs };

/** What the nodes observe: one node unless there are several. Without `before`, nothing was wrong before. */
interface Observations {
  readonly before?: readonly Partial<Observed>[];
  readonly after: readonly Partial<Observed>[];
}

const noLinks: Partial<Observed> = { linksMs: new Map() };
const clock = (aheadMs: number): Partial<Observed> => ({
  clockMs: 11_000 + aheadMs,
  hereMs: 11_000,
});
const shaped: FaultRequest = { ...slow, delayMs: undefined, rateKbits: 64 };
const early: FaultRequest = { ...late, offsetMs: 3600_000 };

test.each<[string, FaultRequest, Observations, string | undefined]>([
  [
    "a cut network",
    cut,
    { after: [links(undefined)] },
    "0 of 1 ping answered, before: 1 of 1 ping answered",
  ],
  ["a whole network", cut, { after: [{}] }, undefined],
  ["a network that one node still has", cut, { after: [links(undefined), {}] }, undefined],
  [
    "a slow network",
    slow,
    { after: [links(300), links(180)] },
    "a round trip takes 180 ms, before: a round trip takes",
  ],
  [
    "a lossy network",
    slow,
    { after: [links(undefined)] },
    "no ping is answered, before: a round trip takes 1 ms",
  ],
  [
    "a narrow network",
    shaped,
    { after: [links(0.5)] },
    "a round trip takes 0.5 ms, before: a round trip takes 1 ms",
  ],
  [
    "no other node",
    slow,
    { after: [noLinks] },
    "no other node to ping, before: a round trip takes 1 ms",
  ],
  [
    "a queue without the effect",
    { ...slow, corruptPercent: 1 },
    { after: [links(300)] },
    undefined,
  ],
  [
    "a delay that varies",
    { ...slow, jitterMs: 100 },
    { after: [links(95)] },
    "a round trip takes 95 ms, before",
  ],
  [
    "a service that is dead",
    dead,
    { after: [runs("dead")] },
    "it is dead on 1 node, before: it runs on 1 node",
  ],
  ["a service that is not", dead, { after: [runs("dead"), runs("runs", 2)] }, undefined],
  [
    "a killed service",
    { ...dead, signal: "kill" },
    { after: [runs("runs", 2), runs("dead")] },
    "it came back by itself on 1 node, it is dead on 1 node, before: it runs on 2 nodes",
  ],
  [
    "a killed service that is the same",
    { ...dead, signal: "kill" },
    { after: [runs("runs", 1)] },
    undefined,
  ],
  [
    "a paused one",
    { ...dead, signal: "stop" },
    { after: [runs("paused", 1)] },
    "it is paused on 1 node",
  ],
  ["one that continues", { ...dead, signal: "stop" }, { after: [runs("runs", 1)] }, undefined],
  ["a fast network", slow, { after: [noLinks, links(150)] }, undefined],
  [
    "late clocks",
    late,
    { before: [clock(5000), clock(-1000)], after: [clock(-3_600_000), clock(-3_601_000)] },
    "the clock is 3600.0 to 3601.0 s behind this computer's, before: the clock is -1.0 to 5.0 s ahead of",
  ],
  [
    "an early clock",
    early,
    { before: [clock(-60_000)], after: [clock(3_545_000)] },
    "the clock is 3545.0 s ahead of this computer's, before: the clock is 60.0 s behind",
  ],
  ["a right clock", early, { after: [clock(3_600_000)] }, "the clock is 3600.0 s ahead of this computer's, before: the clock is 0.0 s ahead"], // prettier-ignore
  ["a clock of which nothing is known", late, { after: [{ clockMs: undefined }] }, undefined],
  [
    "a clock that was wrong already",
    early,
    { before: [clock(3_600_000)], after: [clock(3_600_000)] },
    undefined,
  ],
  ["a right clock on one node", late, { after: [clock(-3_600_000), clock(0)] }, undefined],
  [
    "full disks",
    full,
    { after: [free(4096), free(32 * 2 ** 20)] },
    "0.0 to 33.6 MB are free, before: 5000.0 MB are free",
  ],
  [
    "busy processors",
    pressed,
    { before: [uses({ cpu: 3, computer: 40 })], after: [uses({ cpu: 89, computer: 60 })] },
    "89% of the processors are used, before: 3% of the processors are used",
  ],
  [
    "processors of a computer that has nothing left",
    pressed,
    { before: [uses({ cpu: 3 })], after: [uses({ cpu: 20, computer: 99 })] },
    "20% of the processors are used, and other programs use the rest of the computer's, before: 3%",
  ],
  ["idle processors", pressed, { after: [uses({ cpu: 90 }), uses({ cpu: 60, computer: 60 })] }, undefined], // prettier-ignore
  ["processors of which nothing is known", pressed, { after: [{}] }, undefined],
  [
    "full memory",
    crowded,
    {
      before: [uses({ memory: 20 }), uses({ memory: 30 })],
      after: [uses({ memory: 79 }), uses({ memory: 85 })],
    },
    "79 to 85% of the memory are used, before: 20 to 30% of the memory are used",
  ],
  [
    "memory that is free",
    crowded,
    { after: [uses({ memory: 80 }), uses({ memory: 69 })] },
    undefined,
  ],
  ["an empty disk", full, { after: [free(4096), {}] }, undefined],
])("%s: %j", (_, request, { after, before = after.map(() => runs("runs", 1)) }, evidence) => {
  const judge = () => faultEvidence(request, before.map(observed), after.map(observed));
  if (evidence === undefined)
    expect(judge).toThrow(expect.objectContaining({ id: "remote-command-failed" }));
  else expect(judge()).toStartWith(evidence);
});

test.each<[FaultRequest, Partial<Observed>]>([
  [late, { clockMs: -3_590_000 }],
  [full, free(4096)],
])("a fault that shows on one node only is refused: %j", (request, after) => {
  const both = [observed(), observed()];
  expect(() => faultEvidence(request, both, [observed(after), observed()])).toThrow(
    "does not show",
  );
  expect(faultEvidence(request, both, [observed(after), observed(after)])).toContain(", before: ");
});

test("a fault that does not show at once is looked for again, for a limited time", async () => {
  const time = scriptedClock();
  const before = [observed()];
  const idle = observed(uses({ cpu: 11, computer: 60 }));
  const busy = observed(uses({ cpu: 89, computer: 60 }));
  const answers = [idle, idle, busy];
  const observe = async () => [answers.shift() ?? busy];
  const looking = { request: pressed, before, observe, clock: time };
  expect(await awaitEvidence(looking, neverAborted)).toStartWith("89% of the processors");
  expect(time.pauses).toHaveLength(2);
  const vain = { ...looking, observe: async () => [idle] };
  const failure = await failureOf(awaitEvidence(vain, neverAborted));
  expect(failure.id).toBe("remote-command-failed");
  expect(failure.message).toContain("11% of the processors");
  expect(time.nowMs).toBeWithin(10_000, 20_000);
});

test("a node that cannot have the fault is a fault of the computer", async () => {
  assertCanShow(slow, [observed()], ["agent_0"]);
  const lacking = observed({ measured: new Map([["lack", "no sch_netem"]]) });
  expect(
    await failureOf(
      (async () => assertCanShow(slow, [observed(), lacking], ["agent_0", "agent_1"]))(),
    ),
  ).toMatchObject({
    id: "machine-not-set-up",
    message: "Cannot begin on agent_1: no sch_netem.",
  });
});
