/** Progress where nothing is redrawn, and its log. `terminal/terminal-progress.test.ts` shows it on a terminal. */
import { outside } from "../../../src/outside-text.ts";
import { afterAll, expect, jest, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noColours } from "../../../src/cli/terminal/colours.ts";
import { LogFile } from "../../../src/cli/log-file.ts";
import { TerminalProgress } from "../../../src/cli/terminal/terminal-progress.ts";
import type { Clock } from "../../../src/system/runtime.ts";
import { Masker } from "../../../src/system/masker.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";

interface Bench {
  readonly progress: TerminalProgress;
  readonly log: LogFile;
  readonly time: { now: number };
  readonly written: () => string;
}

function bench({
  verbosity = 0,
  isInterrupted = false,
}: { verbosity?: number; isInterrupted?: boolean } = {}): Bench {
  const time = { now: 1_000_000 };
  const clock: Clock = { now: () => time.now, sleep: () => Promise.resolve() };
  const texts: string[] = [];
  const log = new LogFile(clock);
  const progress = new TerminalProgress({
    screen: { columns: 5_000, rows: 24, write: (text) => void texts.push(text) },
    isLive: false,
    verbosity,
    clock,
    colours: noColours,
    masker: new Masker(),
    nameFlags: (text) => text.replaceAll("`timeout`", "--timeout"),
    log,
    isInterrupted: () => isInterrupted,
  });
  return { progress, log, time, written: () => texts.join("") };
}

function work({ progress, time }: Bench): void {
  const launch = progress.start("Launch");
  launch.update("1 of 2");
  launch.update("2 of 2");
  time.now += 1500;
  launch.done("2 machines");
  launch.done("twice counts once");
  const nodes = ["agent_0", "agent_1"].map((node) => progress.start("Prepare", node));
  for (const reason of ["booting", "booting", "no answer", "no answer"])
    progress.waiting(`agent_0: ${reason}`);
  time.now += 65_000;
  progress.waiting("");
  nodes[0]?.done();
  time.now += 1000;
  nodes[1]?.[Symbol.dispose]();
  progress.detail(1, "one");
  progress.detail(2, "two");
  progress.detail(3, "three");
  progress.note("a note");
  progress.warn("look out");
}

test("off a terminal, all nodes of a step are one line, and only what is new of a wait is written", () => {
  const { progress, time, written } = bench();
  const nodes = ["agent_0", "agent_1"].map((node) => progress.start("Prepare", node));
  progress.waiting("waiting for 2 nodes:\n  agent_0: booting\n  agent_1: booting");
  progress.waiting("waiting for 2 nodes:\n  agent_0: installing\n  agent_1: booting");
  progress.waiting("");
  time.now += 65_000;
  for (const node of nodes) node.done();
  expect(written()).toMatchInlineSnapshot(`
    "Prepare …
    waiting for 2 nodes:
      agent_0: booting
      agent_1: booting
      agent_0: installing
    Prepare: 2 done (1 min 5 s)
    "
  `);
});

// Shows R94.
test("off a terminal a line is written per change of state, never per poll", () => {
  const table = bench();
  work(table);
  expect(table.written()).toMatchInlineSnapshot(`
    "Launch …
    Launch: 2 machines (1.5 s)
    Prepare …
    agent_0: booting
    agent_0: no answer
    agent_1: Prepare: failed (1 min 6 s)
    a note
    Warning: look out
    "
  `);
});

// Shows R43.
test("with -v every node's steps and timings are told, with -vvv everything", () => {
  const table = bench({ verbosity: 1 });
  work(table);
  expect(table.written()).toMatchInlineSnapshot(`
    "Launch …
    Launch: 2 machines (1.5 s)
    agent_0: Prepare …
    agent_1: Prepare …
    agent_0: booting
    agent_0: no answer
    agent_0: Prepare: done (1 min 5 s)
    agent_1: Prepare: failed (1 min 6 s)
    one
    a note
    Warning: look out
    "
  `);
  const loud = bench({ verbosity: 3 });
  work(loud);
  expect(loud.written()).toContain("one\ntwo\nthree\n");
});

test("timings count from the first start to the last end of a title", () => {
  const table = bench();
  work(table);
  expect(table.progress.timings()).toEqual([
    { title: "Launch", ms: 1500 },
    { title: "Prepare", ms: 66_000 },
  ]);
});

test("a step that ends because the user ended the work was stopped, it did not fail", () => {
  const { progress, written } = bench({ isInterrupted: true });
  progress.start("Launch")[Symbol.dispose]();
  expect(written()).toBe("Launch …\nLaunch: stopped (0.0 s)\n");
});

test("off a terminal, a step that failed and a warning have their colours", () => {
  const texts: string[] = [];
  const clock = scriptedClock();
  const progress = new TerminalProgress({
    screen: { columns: 80, rows: 24, write: (text) => void texts.push(text) },
    isLive: false,
    verbosity: 0,
    clock,
    colours: { ...noColours, red: (text) => `<red ${text}>`, yellow: (text) => `<yellow ${text}>` },
    masker: new Masker(),
    nameFlags: (text) => text,
    log: new LogFile(clock),
    isInterrupted: () => false,
  });
  progress.start("Launch")[Symbol.dispose]();
  progress.start("Install").done();
  progress.warn("look out");
  expect(texts.join("")).toBe(
    "Launch …\n<red Launch: failed (0.0 s)>\nInstall …\nInstall: done (0.0 s)\n<yellow Warning: look out>\n",
  );
});

// Shows R123.
test("hidden values are masked, and no control characters of others reach the terminal", () => {
  const { progress, written } = bench({ verbosity: 3 });
  progress.hide("hunter22");
  progress.start("Log in", "hunter22").done(outside("hunter22 works"));
  progress.waiting(`hunter22: ${outside("hunter22?")}`);
  progress.detail(3, outside("evil \x1b]0;title\x07 \x9b2J hunter22\r\n\tindented"));
  // Our own words, and the name of the node, are no secrets.
  expect(written().replace(/^hunter22: (?=Log in|\*)/gm, "")).not.toContain("hunter22");
  expect(written()).toContain("hunter22: ***?\n");
  expect(written()).not.toMatch(/[^\P{Cc}\n\t]/u);
  expect(written()).toContain("evil \uFFFD]0;title\uFFFD \uFFFD2J ***\n  \tindented\n");
  expect(progress.mask("x hunter22")).toBe("x ***");
});

test("notes and warnings name options by their flags", () => {
  const { progress, written } = bench();
  progress.note("see `timeout`");
  progress.warn("see `timeout`");
  expect(written()).toBe("see --timeout\nWarning: see --timeout\n");
});

const folder = mkdtempSync(join(tmpdir(), "cli-log-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the log has everything at full detail, masked, with times, from before it had a place, for this user alone", () => {
  const { progress } = bench();
  const path = join(folder, "log");
  writeFileSync(path, "", { mode: 0o644 });
  progress.hide("hunter22");
  progress.detail(3, `early ${outside("hunter22")}`);
  progress.logTo(path);
  progress.start("Launch", "agent_0").done();
  progress.detail(2, "two\nlines");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const stamp = "1970-01-01T00:16:40.000Z";
  expect(readFileSync(path, "utf8")).toBe(
    `${stamp} early ***\n${stamp} agent_0: Launch\n${stamp} agent_0: Launch: done (0.0 s)\n${stamp} two\n  lines\n`,
  );
});

test("without a place for the log, its last 2000 lines are kept", () => {
  const { progress } = bench();
  const path = join(folder, "late.txt");
  for (let line = 0; line <= 2000; line += 1) progress.detail(3, `line ${line}.`);
  progress.logTo(path);
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  expect(lines).toHaveLength(2000);
  expect(lines[0]).toEndWith(" line 1.");
});

test("without a place for the log the work goes on, and that is said once", () => {
  const { progress, written } = bench();
  progress.logTo("/dev/null/nowhere");
  progress.note("goes on");
  expect(written()).toMatch(/^Warning: cannot write the log: .+\ngoes on\n$/);
});

test("a log in whose place is a link or a pipe is not written, and nothing waits for a reader", () => {
  const link = join(folder, "link");
  const pipe = join(folder, "pipe");
  const victim = join(folder, "victim");
  writeFileSync(victim, "", { mode: 0o644 });
  symlinkSync(victim, link);
  execFileSync("mknod", [pipe, "p"]);
  for (const path of [link, pipe]) {
    const { progress, written } = bench();
    progress.logTo(path);
    expect(written()).toContain("cannot write the log: ");
  }
  expect(statSync(victim).mode & 0o777).toBe(0o644);
});

test("a log that went away with its folder is no longer named", () => {
  const { progress, log } = bench();
  const path = join(folder, "gone");
  progress.logTo(path);
  expect(log.path).toBe(path);
  rmSync(path);
  progress.note("goes on");
  expect(log.path).toBeUndefined();
});

test("after the end only the log gets what parallel work still has to say", () => {
  const table = bench();
  const path = join(folder, "after-the-end.txt");
  table.progress.logTo(path);
  table.progress.note("before");
  table.progress.finish();
  table.progress.note("the API is slow to answer");
  table.progress.start("Launch").done();
  table.log.close();
  expect(table.written()).toBe("before\n");
  expect(readFileSync(path, "utf8")).toContain("the API is slow to answer");
});

test("after 20 MB, the log only gets what users see", () => {
  const { progress } = bench();
  const path = join(folder, "long.txt");
  progress.logTo(path);
  fillWith((text) => progress.detail(3, text), 20_000_000);
  progress.detail(3, "a detail");
  progress.note("a note");
  const logged = readFileSync(path, "utf8").slice(20_000_000);
  expect(logged).toContain("a note");
  expect(logged).not.toContain("a detail");
});

test("no file of the log is larger than 24 MB, whatever is shown, and the next run begins another", () => {
  const path = join(folder, "full.txt");
  const first = bench();
  first.progress.logTo(path);
  fillWith((text) => first.progress.warn(text), 30_000_000);
  const full = readFileSync(path, "utf8");
  expect(full.length).toBeLessThanOrEqual(24_000_000);
  expect(full).toEndWith("(This log is full.)\n");
  expect(full.match(/This log is full/g)).toHaveLength(1);
  const second = bench();
  fillWith((text) => second.progress.warn(text), 5_000_000);
  second.progress.logTo(path);
  second.progress.note("a note");
  expect(readFileSync(path, "utf8")).toContain("a note");
  expect(statSync(path).size).toBeLessThan(2_100_000);
  expect(readFileSync(`${path}.old`, "utf8") === full).toBe(true);
});

test.each([
  [19_999_999, true, [true, false]],
  [20_000_000, false, [true, true]],
])("a log of %d bytes continues: %p", (bytes, continues, takesDetails) => {
  const path = join(folder, `sized-${bytes}.txt`);
  writeFileSync(path, "");
  truncateSync(path, bytes);
  const { log } = bench();
  log.open(path);
  const before = log.takesDetails;
  log.write("x");
  expect([before, log.takesDetails]).toEqual(takesDetails);
  expect(statSync(path).size > bytes).toBe(continues);
  log.close();
});

function fillWith(write: (text: string) => void, bytes: number): void {
  const text = "x ".repeat(1900).trim();
  for (let written = 0; written < bytes; written += text.length) write(text);
}

test.each(["waiting", "note", "warn", "step"] as const)(
  "only one line of %s begins at the margin",
  (way) => {
    const { progress, written } = bench();
    const text = `a node says no\nWarning: x run: curl\n  ::set-output name=a::b\n##vso[task.complete]${"y".repeat(4_000_000)}`;
    if (way === "step") progress.start("Wait").done(text);
    else progress[way](text);
    const [, ...later] = written()
      .trimEnd()
      .split("\n")
      .slice(way === "step" ? 1 : 0);
    expect(later).toEqual([
      "  Warning: x run: curl",
      "  : :set-output name=a::b",
      expect.stringMatching(/^ {2}# #vso\[task\.complete\]y{3000,4000}…$/),
    ]);
  },
);

test("work without a word gets a line a minute, with the last text of the work", () => {
  jest.useFakeTimers();
  try {
    const { progress, time, written } = bench();
    const build = progress.start("Build the node image", "debian-12");
    const pass = (ms: number): void => {
      time.now += ms;
      jest.advanceTimersByTime(ms);
    };
    build.update("Step 3/8");
    pass(60_000);
    progress.note("Something else.");
    build.update("Step \u001b[31m4/8");
    pass(20_000);
    pass(40_000);
    build.done();
    progress.waiting("agent_0: booting");
    pass(60_000);
    progress.waiting("");
    pass(120_000);
    expect(written().split("\n")).toEqual([
      "Build the node image …",
      "Build the node image: still at work after 1 min (debian-12, Step 3/8)",
      "Something else.",
      "Build the node image: still at work after 2 min (debian-12, Step 4/8)",
      "Build the node image: done (2 min)",
      "agent_0: booting",
      "Still waiting: agent_0: booting",
      "",
    ]);
  } finally {
    jest.useRealTimers();
  }
});
