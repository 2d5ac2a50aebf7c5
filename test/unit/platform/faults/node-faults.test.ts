import { expect, test } from "bun:test";
import { faultKinds, faultRows } from "../../../../src/platform/faults/fault-kinds.ts";
import {
  observeScript,
  parseObservation,
  startFaultScript,
} from "../../../../src/platform/faults/node-faults.ts";

const record = {
  kind: "partition",
  description: "it's cut",
  links: ["10.0.0.2"],
} as const;

test("what a node observed is read, and whatever has another form is skipped", () => {
  const stdout = [
    `fault=0123abcd 57 ${JSON.stringify(record)}`,
    `fault=0123abcd 57 {"kind": "flood", "description": "", "links": []}`,
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
    measured: new Map([["free", "4096"]]),
    linksMs: new Map([
      ["10.0.0.2", 0.123],
      ["10.0.0.3", undefined],
    ]),
  });
  expect(parseObservation("clock=soon\nfree=-1\n")).toMatchObject({
    clockMs: undefined,
  });
});

test.each([
  ["iputils", "rtt min/avg/max/mdev = 0.123/0.130/0.140/0.007 ms", 0.123],
  ["old iputils", "rtt min/avg/max/mdev = 0.123/0.130/0.140/0.007 ms, pipe 2", 0.123],
  ["inetutils", "round-trip min/avg/max/stddev = 0.123/0.130/0.140/0.007 ms", 0.123],
  ["busybox", "round-trip min/avg/max = 0.123/0.130/0.140 ms", 0.123],
  ["any, without an answer", "3 packets transmitted, 0 packets received", undefined],
])("a round trip is read from the ping of %s", async (_name, summary, ms) => {
  const script = `ping() { echo '${summary}'; }
${await observeScript({ links: ["10.0.0.2"], limitSeconds: 1, tries: 1 })}
main 10.0.0.2`;
  const child = Bun.spawn(["sh", "-e", "-c", script], { stdout: "pipe", stderr: "inherit" });
  const { linksMs } = parseObservation(await new Response(child.stdout).text());
  expect([...linksMs]).toEqual([["10.0.0.2", ms]]);
});

test.each(faultKinds)("the scripts of %s are ones that a shell reads", async (kind) => {
  const measure = { NAME: "it's" };
  const scripts = [
    await startFaultScript({
      id: "0123abcd",
      durationSeconds: 60,
      values: { WORD: "it's", NUMBER: 1 },
      record: { ...record, kind },
    }),
    await observeScript({ links: [], record: { kind, measure }, limitSeconds: 1, tries: 1 }),
  ];
  for (const script of scripts) {
    const child = Bun.spawn(["sh", "-n"], { stdin: new Blob([script]), stderr: "pipe" });
    expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
  }
});

test("the options of all kinds have names and flags of their own", () => {
  const all = faultKinds.flatMap((kind) => Object.entries(faultRows[kind].options));
  expect(new Set(all.map(([name]) => name)).size).toBe(all.length);
  expect(new Set(all.map(([, { flag }]) => flag)).size).toBe(all.length);
  for (const kind of faultKinds)
    expect(Object.keys(faultRows[kind].options)).toEqual(
      expect.arrayContaining([...faultRows[kind].needs]),
    );
});
