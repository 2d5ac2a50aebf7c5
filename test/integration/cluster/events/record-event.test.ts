import { expect, test } from "bun:test";
import { stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  checkRecorder,
  recordEvent,
  recordStep,
  recording,
  runRecorder,
} from "../../../../src/cluster/events/record-event.ts";
import type { NewEvent } from "../../../../src/model/event.ts";
import { outside } from "../../../../src/outside-text.ts";
import { eventsFile, readEvents } from "../../../../src/store/events.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const at = "2026-11-28T00:00:00.000Z";
const recorder = {
  clock: { now: () => Date.parse(at) },
  progress: { ...silentProgress, mask: (text: string) => text.replaceAll("hunter22", "***") },
};
const node = { role: "agent", index: 0 } as never;
const result: NewEvent = { kind: "result", title: "create", isGood: true, text: "" };

test("events are read as they were recorded, masked and on one line, by this user alone", async () => {
  await using folder = await scratchFolder();
  const text = `the password is ${outside("hunter22\n\u001B[31mred")}`;
  recordEvent(folder.path, { kind: "check", node: "agent_0", isReady: false, text }, recorder);
  recordStep(folder.path, { title: "Prepare", course: "begun", atMs: 0 }, recorder.progress);
  expect(await readEvents(folder.path)).toMatchObject([
    { at, kind: "check", node: "agent_0", isReady: false, text: "the password is *** red" },
    { at: "1970-01-01T00:00:00.000Z", kind: "phase", title: "Prepare", course: "begun" },
  ]);
  expect((await stat(eventsFile(folder.path))).mode & 0o777).toBe(0o600);
});

test("lines of a newer program, garbage and half a line are skipped", async () => {
  await using folder = await scratchFolder();
  recordEvent(folder.path, result, recorder);
  const lines = [
    `{"at":"${at}","kind":"dream"}`,
    `{"at":"${at}","kind":"toString"}`,
    '{"at":"yesterday","kind":"result","title":"","isGood":true,"text":""}',
    "[".repeat(10_000),
    `{"at":"${at}","kind":"check","node":"<b>","isReady":true,"text":""}`,
    '{"at":"',
  ];
  await writeFile(eventsFile(folder.path), `${lines.join("\n")}\n`, { flag: "a" });
  recordEvent(folder.path, result, recorder);
  expect(await readEvents(folder.path)).toHaveLength(2);
});

test("an event of a thousand nodes is read, however long its command and its reason", async () => {
  await using folder = await scratchFolder();
  const nodes = Array.from({ length: 1000 }, (_, index) => `public_agent_${index}`);
  const [command, text] = ["true && ".repeat(200), "no answer, ".repeat(200)];
  recordEvent(folder.path, { kind: "run", command, nodes, course: "failed", text }, recorder);
  expect(await readEvents(folder.path)).toMatchObject([{ kind: "run", nodes }]);
});

test("a line that was cut off swallows no other", async () => {
  await using folder = await scratchFolder();
  await writeFile(eventsFile(folder.path), '{"at":"');
  recordEvent(folder.path, result, recorder);
  recordEvent(folder.path, result, recorder);
  expect(await readEvents(folder.path)).toHaveLength(2);
});

test("a command that has no status has an end all the same, once", async () => {
  await using folder = await scratchFolder();
  const begin = () => runRecorder({ directory: folder.path }, { words: ["test"] }, [], recorder);
  begin()[Symbol.dispose]();
  const lost = begin();
  lost.end([255], "master_0 is gone");
  lost[Symbol.dispose]();
  expect(await readEvents(folder.path)).toMatchObject([
    { kind: "run", course: "begun", nodes: [] },
    { kind: "run", course: "failed", text: expect.stringContaining("interrupted") },
    { kind: "run", course: "begun" },
    { kind: "run", course: "failed", status: 255, text: "master_0 is gone" },
  ]);
});

test("an end has the last lines of the output, also if the command did not run to it", async () => {
  await using folder = await scratchFolder();
  const outputs = () => [{ text: "one\n  two" }];
  const begin = () =>
    runRecorder({ directory: folder.path }, { words: ["test"], outputs }, [node], recorder);
  begin().end([0]);
  begin()[Symbol.dispose]();
  const output = ["one", "  two"];
  expect(await readEvents(folder.path)).toMatchObject([
    { course: "begun" },
    { course: "done", output },
    { course: "begun" },
    { course: "failed", output },
  ]);
});

test.each([
  ["done", [1]],
  ["failed", [0]],
  ["failed", [1, 0]],
  ["failed", [127]],
  ["failed", []],
] as const)(
  "a command that was expected to fail is %s with the statuses %p",
  async (course, ends) => {
    await using folder = await scratchFolder();
    const command = { words: ["test"], fails: true };
    using run = runRecorder({ directory: folder.path }, command, [node], recorder);
    run.end(ends);
    expect(await readEvents(folder.path)).toMatchObject([
      { kind: "run", course: "begun" },
      { kind: "run", course, text: "it was expected to fail" },
    ]);
  },
);

test("a file that can't be written, is a link or is full fails nothing", async () => {
  await using folder = await scratchFolder();
  recordEvent(join(folder.path, "gone"), result, recorder);
  const target = join(folder.path, "target");
  await writeFile(target, "");
  await symlink(target, eventsFile(folder.path));
  recordEvent(folder.path, result, recorder);
  expect(await Bun.file(target).text()).toBe("");
  expect(await readEvents(folder.path)).toEqual([]);
  await using other = await scratchFolder();
  await writeFile(eventsFile(other.path), Buffer.alloc(20_000_000, "\n"));
  recordEvent(other.path, result, recorder);
  expect((await stat(eventsFile(other.path))).size).toBe(20_000_000);
});

test("a task, a command and checks leave their courses, and checks only what has changed", async () => {
  await using folder = await scratchFolder();
  const { path: directory } = folder;
  const eventOf = (course: "begun" | "done" | "failed"): NewEvent => ({
    kind: "upgrade",
    version: "2",
    course,
  });
  const fail = async () => Promise.reject(new Error("no"));
  await failureOf(recording(directory, eventOf, recorder, fail));
  using run = runRecorder({ directory }, { words: ["test", "--password", "x"] }, [node], recorder);
  run.end([3]);
  const onAnswers = checkRecorder(directory, recorder);
  const waiting = { node, verdict: { kind: "waiting", reason: "no leader" } } as never;
  onAnswers([waiting]);
  onAnswers([waiting]);
  onAnswers([{ node, verdict: { kind: "ready" } } as never]);
  expect(await readEvents(directory)).toMatchObject([
    { kind: "upgrade", course: "begun" },
    { kind: "upgrade", course: "failed" },
    { kind: "run", command: "test --password ***", nodes: ["agent_0"], course: "begun" },
    { kind: "run", course: "failed", status: 3 },
    { kind: "check", isReady: false, text: "no leader" },
    { kind: "check", isReady: true },
  ]);
});
