import { expect, test } from "bun:test";
import {
  type FaultPart,
  parseObservation,
  startFaultScript,
} from "../../../../src/platform/faults/node-faults.ts";

const record = {
  kind: "partition",
  description: "it's cut",
  links: ["10.0.0.2"],
  folder: "",
} as const;

test("what a node observed is read, and whatever has another form is skipped", () => {
  const stdout = [
    `fault=0123abcd 57 ${JSON.stringify(record)}`,
    `fault=0123abcd 57 {"kind": "flood", "description": "", "links": [], "folder": ""}`,
    `fault=../../ab 57 ${JSON.stringify(record)}`,
    `fault=89abcdef 5 ${JSON.stringify({ ...record, description: "a\u001b[31m\nb" })}`,
    "clock=1700000000.123",
    "free=4096",
    "link=10.0.0.2 0.123",
    "link=10.0.0.3 lost",
    "link=host 1",
  ].join("\n");
  const found = parseObservation(stdout);
  expect(found.faults.map(({ id, secondsLeft }) => [id, secondsLeft])).toEqual([
    ["0123abcd", 57],
    ["89abcdef", 5],
  ]);
  expect(found.faults[0]).toMatchObject(record);
  expect(found.faults[1]!.description).not.toMatch(/\p{Cc}/u);
  expect({ ...found, faults: [] }).toEqual({
    faults: [],
    clockMs: 1_700_000_000_123,
    freeBytes: 4096,
    linksMs: new Map([
      ["10.0.0.2", 0.123],
      ["10.0.0.3", undefined],
    ]),
  });
  expect(parseObservation("clock=soon\nfree=-1\n")).toMatchObject({
    clockMs: undefined,
    freeBytes: undefined,
  });
});

const parts: readonly FaultPart[] = [
  { kind: "partition", sources: ["10.0.0.2", "10.0.0.3"] },
  { kind: "network", address: "10.0.0.1", netem: ["delay", "200ms"] },
  { kind: "clock", offsetSeconds: -30 },
  { kind: "disk", folder: "/var/lib", leaveBytes: 0, sharers: 0 },
];

test.each(parts.map((part) => [part.kind, part] as const))(
  "the script of %s is one that a shell reads",
  async (_, part) => {
    const script = startFaultScript({ id: "0123abcd", durationSeconds: 60, part, record });
    const child = Bun.spawn(["sh", "-n"], { stdin: new Blob([script]), stderr: "pipe" });
    expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
  },
);
