import { expect, test } from "bun:test";
import { clockText, readClock } from "../../../../src/platform/node-logs.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { mergedLines, preciseTime } from "../../../../src/cluster/logs/merged-lines.ts";

const nowMs = Date.UTC(2026, 10, 29);
const texts = [
  { name: "master_0.clock.txt", text: clockText(-1500, 3) },
  {
    name: "master_0.journal.txt",
    text: [
      "2026-11-28T10:00:00.000250+0100 m kernel: boot",
      "-- Boot 0123456789abcdef --",
      "2026-11-28T10:00:00.500001+0100 m etcd[7]: second",
    ].join("\n"),
  },
  { name: "master_0.kernel.txt", text: "2026-11-28T10:00:00.000250+0100 m kernel: boot" },
  { name: "agent_0.journal.txt", text: "2026-11-28T09:00:02.000000+00:00 a etcd[9]: first" },
  { name: "agent_0.install.log", text: "no time" },
  { name: "agent_1.no-logs.txt", text: "gone" },
];

test("lines are ordered by this computer's clock to the microsecond, and a journal's part isn't repeated", async () => {
  const lines = (await mergedLines(texts, nowMs, neverAborted)).map(
    ({ ms, node, unit, text }) =>
      `${ms === undefined ? "-" : preciseTime(ms)} ${node} ${unit}: ${text}`,
  );
  expect(lines).toEqual([
    "- agent_0 install: no time",
    "2026-11-28T09:00:01.500250Z master_0 kernel: boot",
    "2026-11-28T09:00:01.500250Z master_0 kernel: -- Boot 0123456789abcdef --",
    "2026-11-28T09:00:02.000000Z agent_0 etcd: first",
    "2026-11-28T09:00:02.000001Z master_0 etcd: second",
  ]);
});

test("a line with a carriage return or another line break of Unicode has its time and its unit", async () => {
  const begin = "2026-11-28T10:00:00.000000+00:00 m";
  const text = `${begin} app[7]: 10 %\r 20 %\r\n${begin} kernel: Out of memory: Killed process 1 (a\u2028b)`;
  const lines = await mergedLines([{ name: "master_0.journal.txt", text }], nowMs, neverAborted);
  expect(lines).toMatchObject([
    { ms: Date.UTC(2026, 10, 28, 10), unit: "app", text: "10 % 20 %" },
    {
      ms: Date.UTC(2026, 10, 28, 10),
      unit: "kernel",
      text: "Out of memory: Killed process 1 (a b)",
    },
  ]);
});

test.each([0, 12, -40_000])("a clock's difference of %d ms is read back", (ms) => {
  expect(readClock(clockText(ms, 5))).toBe(ms);
});

test.each(["", "soon", "9999999999999999999 ms", "NaN ms", "99999999999999 ms\n"])(
  "%j is no difference of a clock",
  (text) => expect(readClock(text)).toBeUndefined(),
);
