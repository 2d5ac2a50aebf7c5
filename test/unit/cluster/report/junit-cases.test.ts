/** The cases of JUnit files in a report. */
import { expect, test } from "bun:test";
import { readCases } from "../../../../src/cluster/report/read-cases.ts";
import { reportParts } from "../../../../src/cluster/report/make-report.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const start = Date.parse("2026-11-28T10:00:00Z");
const run = { kind: "run", command: "./test.sh", nodes: ["master_0"] } as const;

test("a JUnit file's cases stand in the timeline, and absurd ones fail nothing", async () => {
  const xml = `<testsuites><testsuite timestamp="2026-11-28T10:01:10">
    <testcase classname="a" name="elects &lt;a&gt; leader" time="5"/><testcase name="loses it" time="7"><failure message="no &#10;leader"/><error message="b"/></testcase>
    <testsuite timestamp="+275760-09-13T00:00:00.001Z"/><testcase name="x" time="1e999"/><testcase name="y" time="-1"><skipped/></testcase>
    <system-out><![CDATA[<failure/> <testcase name="printed">]]></system-out><!-- <testcase name="old"/> --><testcase
      name='a > b "c" &#233;&#x0;' time='1'/></testsuite></testsuites>`;
  const { cases } = await reportParts(
    {
      cluster: undefined,
      clusterId: "c",
      directory: "",
      file: "",
      facts: [],
      commands: [],
      texts: [],
      nowMs: start,
      xml: [{ name: "a.xml", text: xml }],
      events: [
        { ...run, course: "begun", at: new Date(start + 60_000).toISOString() },
        { ...run, course: "failed", status: 1, at: new Date(start + 120_000).toISOString() },
      ],
    },
    neverAborted,
  );
  expect(
    cases.map(({ name, startMs, endMs, hasFailed, isSkipped, failure }) => [
      name,
      startMs - start,
      endMs - start,
      isSkipped ? "skipped" : hasFailed && failure,
    ]),
  ).toEqual([
    ["a elects <a> leader", 70_000, 75_000, false],
    ["loses it", 75_000, 82_000, "no leader"],
    ["x", 82_000, 82_000, false],
    ["y", 82_000, 82_000, "skipped"],
    ['a > b "c" é\uFFFD', 82_000, 83_000, false],
  ]);
});

test("a failure of a suite outside its cases fails no case, and stands there by itself", () => {
  const xml = `<testsuite name="etcd"><testcase name="a"/><error message="set-up"/><testcase name="b"></testcase>
    <failure message="tear-down"/></testsuite><error message="nowhere"/>`;
  const cases = readCases(xml, { startMs: 0, endMs: 1 });
  expect(cases.map(({ name, hasFailed, failure }) => [name, hasFailed && failure])).toEqual([
    ["a", false],
    ["etcd", "set-up"],
    ["b", false],
    ["etcd", "tear-down"],
    ["etcd", "nowhere"],
  ]);
});

test("a JUnit file with too many cases is cut, and the report says so", async () => {
  const text = '<testcase name="a"/>'.repeat(30_000);
  const { cases, gaps } = await reportParts(
    {
      cluster: undefined,
      clusterId: "c",
      directory: "",
      file: "",
      facts: [],
      commands: [],
      texts: [],
      nowMs: start,
      xml: [{ name: "a.xml", text }],
      events: [],
    },
    neverAborted,
  );
  expect(cases).toHaveLength(20_000);
  expect(gaps).toEqual(["a.xml: the test cases after the first 20000"]);
});

test("a failure whose message is long has failed its case", () => {
  const long = "x ".repeat(20_000);
  const xml = `<testsuite name="etcd"><testcase name="a"><failure message="no leader &gt; ${long}" type="E">b</failure></testcase>
    <testcase name="b" file="${long}"><skipped/></testcase><testcase name="c"/></testsuite>`;
  const cases = readCases(xml, { startMs: 0, endMs: 1 });
  expect(cases.map(({ name, hasFailed, isSkipped }) => [name, hasFailed, isSkipped])).toEqual([
    ["a", true, false],
    ["b", false, true],
    ["c", false, false],
  ]);
  expect(cases[0]?.failure).toStartWith("no leader > x x");
});
