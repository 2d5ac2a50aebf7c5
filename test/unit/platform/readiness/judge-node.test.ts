import { expect, test } from "bun:test";
import { unmarked } from "../../../../src/outside-text.ts";
import { examples } from "../../../../src/platform/examples/examples.ts";
import { parsePlatformFile, platformHead } from "../../../../src/platform/folder/platform-file.ts";
import {
  type NodeReport,
  hasTls,
  judgeNode,
  parseNodeReport,
  reportedLayout,
} from "../../../../src/platform/readiness/node-question.ts";
import { hostileOutputs } from "../../../support/hostile-output.ts";

const installed: NodeReport = {
  layout: "cluster",
  status: "exit 0",
  unit: "active",
  setup: {},
  checkStatus: 0,
  checkOutput: "",
  isTlsEnabled: false,
  facts: "",
  log: [],
};
const waiting = (reason: string): unknown => ({ kind: "waiting", reason });
const failed = (reason: string): unknown => ({ kind: "failed", reason, log: [] });

const cases: readonly (readonly [string, Partial<NodeReport>, unknown])[] = [
  ["a check that passes", {}, { kind: "ready" }],
  [
    "a check that passes under a platform that another program installed",
    { status: "", unit: "inactive" },
    { kind: "ready" },
  ],
  [
    "no layout",
    { layout: "", status: "", unit: "inactive", checkStatus: undefined },
    waiting("not installed yet"),
  ],
  [
    "an installer at work",
    { status: "running", checkStatus: undefined },
    waiting("the installer is running"),
  ],
  [
    "an installer that was just begun",
    { status: "", checkStatus: undefined },
    waiting("the installer is running"),
  ],
  [
    "an installer that is about to work",
    { status: "running", unit: "activating" },
    waiting("the installer is running"),
  ],
  [
    "a unit that reloads after it",
    { setup: { "dcos-setup": "reloading" }, checkStatus: undefined },
    waiting("dcos-setup is running"),
  ],
  ["an idle unit after it", { setup: { "dcos-setup": "inactive" } }, { kind: "ready" }],
  [
    "an installer that failed",
    { status: "exit 7", unit: "failed" },
    failed("the install script exited with status 7"),
  ],
  [
    "an installer without its unit",
    { status: "running", unit: "inactive" },
    failed("the installer was interrupted"),
  ],
  [
    "an installer of whose unit systemd says nothing",
    { status: "running", unit: "" },
    waiting("the installer is running"),
  ],
  [
    "a unit at work after it",
    { setup: { "dcos-setup": "activating" }, checkStatus: undefined },
    waiting("dcos-setup is running"),
  ],
  [
    "a failed unit after it",
    { setup: { "dcos-setup": "failed" } },
    failed("the unit dcos-setup failed"),
  ],
  [
    "no check yet",
    { checkStatus: undefined },
    waiting("the platform's own check is not installed yet"),
  ],
  ["a check without end", { checkStatus: 124 }, waiting("its check did not finish within 20 s")],
  [
    "a folder's check without end",
    {
      layout: "folder",
      checkStatus: 124,
      facts: '{"name":"a","version":"1","checkTimeout":"60s"}',
    },
    waiting("its check did not finish within 60 s (checkTimeout in platform.yaml)"),
  ],
  [
    "a warning",
    { checkStatus: 1, checkOutput: "a\nlow on disk\n" },
    waiting("its check says: low on disk"),
  ],
  [
    "the first complaint among several lines",
    {
      checkStatus: 2,
      checkOutput: "ok: a runs\ncritical: b is down\ncritical: c is down\nok: d runs\n",
    },
    waiting("its check says: critical: b is down"),
  ],
  ["a mute check", { checkStatus: 2 }, waiting("its check says: status 2")],
  [
    "a check that answers in JSON",
    {
      checkStatus: 2,
      checkOutput: JSON.stringify({
        checks: { a: { output: "", status: 0 }, b: { output: "no leader\n", status: 2 } },
      }),
    },
    waiting("its check says: b: no leader"),
  ],
];

test.each(cases)("%s", (_name, changes, verdict) => {
  const found = judgeNode({ ...installed, ...changes });
  const shown = "reason" in found ? { ...found, reason: unmarked(found.reason) } : found;
  expect(shown).toEqual(verdict as ReturnType<typeof judgeNode>);
});

test("a report is read from its lines, whatever stands around them", () => {
  const text = `motd without meaning
seen=4038471504-75
layout=dcos
status=exit 0
unit=active
setup.dcos-download=inactive
setup.dcos-setup=activating
config={"ssl_enabled": "true", "a": 1}
check.status=2
check=first = line
check=second
log=x=1
`;
  expect(parseNodeReport(text)).toEqual({
    seen: "4038471504-75",
    layout: "dcos",
    status: "exit 0",
    unit: "active",
    setup: { "dcos-download": "inactive", "dcos-setup": "activating" },
    checkStatus: 2,
    checkOutput: "first = line\nsecond",
    isTlsEnabled: true,
    facts: "",
    log: ["x=1"],
  });
});

test("of a value that a node reports twice, only the first counts, and a line without a value is none", () => {
  const first = 'layout=dcos\nstatus=odd\nconfig={"ssl_enabled": true}\nfacts={}\n';
  const more = 'layout=cluster\nstatus=running\nconfig={"ssl_enabled": false}\nfacts=[]\nlogs\n';
  const expected = { layout: "dcos", status: "", isTlsEnabled: true, facts: "{}", log: [] };
  expect(parseNodeReport(first + more)).toMatchObject(expected);
});

test("the layout of a platform that is a folder, and its TLS, are as its facts say", async () => {
  const text = examples.slurm.find(({ path }) => path === "platform.yaml")!.text;
  const { value: facts } = await parsePlatformFile(text, "platform.yaml");
  const layout = reportedLayout({ layout: "folder", facts: platformHead(facts!) })!;
  expect(layout.web?.endpoint?.port).toBe(80);
  expect(hasTls(layout, { isTlsEnabled: true })).toBeFalse();
  const secure = {
    ...facts!,
    web: { ...facts!.web!, scheme: "https", certificate: "/ca.pem" } as const,
  };
  expect(
    hasTls(reportedLayout({ layout: "folder", facts: platformHead(secure) })!, {
      isTlsEnabled: false,
    }),
  ).toBeTrue();
  expect(reportedLayout({ layout: "folder", facts: "{" })).toBeUndefined();
});

test.each([true, false, undefined])(
  "the TLS of a release is as it reports it: %p",
  (isTlsEnabled) => {
    const layout = reportedLayout({ layout: "cluster", facts: "" })!;
    expect([layout.name, hasTls(layout, { isTlsEnabled })]).toEqual(["cluster", isTlsEnabled]);
    expect(reportedLayout({ layout: "", facts: "" })).toBeUndefined();
  },
);

test("3000 hostile checks and logs say nothing but what a check and a log say", () => {
  for (const text of hostileOutputs(12, 3000)) {
    const lines = (key: string): string =>
      text
        .split("\n")
        .map((line) => `${key}=${line}\n`)
        .join("");
    const head = "layout=cluster\nstatus=running\nunit=active\ncheck.status=7\n";
    const { checkOutput, log, ...others } = parseNodeReport(
      `${head}${lines("check")}${lines("log")}`,
    );
    const said = {
      layout: "cluster",
      status: "running",
      unit: "active",
      setup: {},
      checkStatus: 7,
    };
    expect(others).toEqual({ ...said, isTlsEnabled: undefined, facts: "" });
    expect(checkOutput.split("\n").length).toBe(text.split("\n").length);
    expect(log.length).toBe(Math.min(20, text.split("\n").length));
  }
});

test("3000 hostile reports: every value has its shape", () => {
  for (const text of hostileOutputs(13, 3000)) {
    const report = parseNodeReport(text.replaceAll(" ", "="));
    expect(report.status).toMatch(/^(|running|exit \d+)$/);
    for (const word of [report.layout, report.unit, ...Object.entries(report.setup).flat()])
      expect(word).toMatch(/^[\w.@-]*$/);
    expect(report.checkStatus ?? 0).toBeInteger();
  }
});

test.each([
  ["", undefined],
  ['{"ssl_enabled": false}', false],
  ['{"ssl_enabled": true}', true],
  ['{"not_ssl_enabled": true}', false],
])("TLS as %s says it: %s", (config, isEnabled) => {
  expect(parseNodeReport(`config=${config}`).isTlsEnabled).toBe(isEnabled);
});

test.each([
  [
    "in JSON",
    JSON.stringify({
      checks: { [`a\nWarning: b${"c".repeat(4_000_000)}`]: { status: 1, output: "x\n::error::y" } },
    }),
  ],
  ["as text", `\u001B[2Jcritical: ${"x".repeat(4_000_000)}\r::error::y`],
])("a check's complaint %s is one short line", (_name, checkOutput) => {
  const report = {
    ...parseNodeReport("layout=cluster\nstatus=exit 0\n"),
    checkStatus: 1,
    checkOutput,
  };
  const verdict = judgeNode(report);
  const reason = verdict.kind === "waiting" ? verdict.reason : "";
  expect(reason).toStartWith("its check says: ");
  expect(reason.length).toBeLessThan(400);
  expect(reason).not.toMatch(/[\p{Cc}\p{Cf}]|(?<!\S)::error/u);
});
