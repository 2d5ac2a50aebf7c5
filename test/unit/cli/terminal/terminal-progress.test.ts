/** Progress on a terminal, where it is redrawn. `../progress.test.ts` shows the rest. */
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { noColours } from "../../../../src/cli/terminal/colours.ts";
import { LogFile } from "../../../../src/cli/log-file.ts";
import { TerminalProgress } from "../../../../src/cli/terminal/terminal-progress.ts";
import type { Clock } from "../../../../src/system/runtime.ts";
import { Masker } from "../../../../src/system/masker.ts";
import { FakeScreen } from "./fake-screen.ts";

const nodes = ["agent_0", "agent_1", "agent_2", "agent_3", "agent_4", "agent_5"];

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function openTerminal(columns = 100) {
  const screen = new FakeScreen({ columns, rows: 24 });
  const time = { now: 1_000_000, setBy: 0 };
  const clock: Clock = {
    now: () => time.now + time.setBy,
    passed: () => time.now,
    sleep: () => Promise.resolve(),
  };
  const progress = new TerminalProgress({
    screen,
    isLive: true,
    verbosity: 0,
    clock,
    colours: { ...noColours, red: (mark) => `red ${mark}`, green: (mark) => `green ${mark}` },
    masker: new Masker(),
    nameFlags: (text) => text,
    log: new LogFile(clock),
    isInterrupted: () => false,
  });
  const pass = (ms: number): void => {
    for (const end = time.now + ms; time.now < end;) {
      time.now += 100;
      jest.advanceTimersByTime(100);
    }
  };
  return { screen, progress, pass, time };
}

test("work that takes less than 0.3 s leaves nothing on the screen", () => {
  const { screen, progress, pass } = openTerminal();
  const launch = progress.start("Launch");
  progress.start("Prepare").done();
  pass(200);
  launch.done();
  pass(1000);
  expect(screen.written).toEqual([]);
});

test("work is drawn after 0.3 s, also if it consists of short steps", () => {
  const { screen, progress, pass } = openTerminal();
  const launch = progress.start("Launch");
  pass(200);
  progress.start("Prepare");
  launch.done();
  pass(100);
  expect(screen.lines).toEqual(["green ✔ Launch (0.2 s)", "⠙ Prepare (0.1 s)"]);
});

test("a clock that is set changes no duration", () => {
  const { screen, progress, pass, time } = openTerminal();
  progress.start("Launch");
  time.setBy = -3_600_000;
  pass(400);
  expect(screen.lines).toEqual(["⠹ Launch (0.4 s)"]);
});

test("the reasons for a wait are drawn after 0.3 s, however often they change", () => {
  const { screen, progress, pass } = openTerminal();
  progress.waiting("agent_0: booting");
  pass(200);
  progress.waiting("agent_0: no answer");
  pass(100);
  expect(screen.lines).toEqual(["⠙ agent_0: no answer"]);
});

test("each node that is worked on is named, up to four, with the last of their texts", () => {
  const { screen, progress, pass } = openTerminal();
  const steps = nodes.map((node) => progress.start("Prepare", node));
  const drawn = (): readonly string[] => {
    pass(300);
    return screen.lines;
  };
  expect(drawn()).toEqual([
    "⠙ Prepare 0 of 6: agent_0, agent_1, agent_2, agent_3 and 2 more (0.3 s)",
  ]);
  steps[5]?.update("42 of 310 MB");
  steps[0]?.done();
  expect(drawn()).toEqual([
    "⠼ Prepare 1 of 6: agent_1, agent_2, agent_3, agent_4 and 1 more 42 of 310 MB (0.6 s)",
  ]);
  steps[1]?.done();
  expect(drawn()).toEqual([
    "⠧ Prepare 2 of 6: agent_2, agent_3, agent_4, agent_5 42 of 310 MB (0.9 s)",
  ]);
});

test("a single node, and work without one, are not counted", () => {
  const { screen, progress, pass } = openTerminal();
  progress.start("Launch").update("1 of 3");
  progress.start("Prepare", "agent_0");
  progress.waiting("booting\nno answer");
  pass(300);
  expect(screen.lines).toEqual([
    "⠙ Launch 1 of 3 (0.3 s)",
    "⠙ Prepare agent_0 (0.3 s)",
    "  booting",
    "   no answer",
  ]);
  progress.waiting("");
  pass(100);
  expect(screen.lines).toEqual(["⠹ Launch 1 of 3 (0.4 s)", "⠹ Prepare agent_0 (0.4 s)"]);
  progress.start("Prepare", "agent_1");
  pass(100);
  expect(screen.lines).toEqual([
    "⠸ Launch 1 of 3 (0.5 s)",
    "⠸ Prepare 0 of 2: agent_0, agent_1 (0.5 s)",
  ]);
});

test("where a line is too long, its time and its last text stay, and the names go", () => {
  const { screen, progress, pass } = openTerminal(60);
  const build = progress.start("Build the image", `localhost/${"image".repeat(10)}`);
  const steps = nodes.map((node) => progress.start("Prepare", node));
  pass(300);
  expect(screen.lines).toEqual([
    "⠙ Build the image localhost/imageimageimageimageim… (0.3 s)",
    "⠙ Prepare 0 of 6: agent_0, agent_1, agent_2, agent… (0.3 s)",
  ]);
  build.update("Setting up erlang");
  steps[0]?.update("42 of 310 MB");
  pass(100);
  expect(screen.lines).toEqual([
    "⠹ Build the image Setting up erlang (0.4 s)",
    "⠹ Prepare 0 of 6: 42 of 310 MB (0.4 s)",
  ]);
});

test("notes stay above the drawn lines, and the mark of a step that fails is red", () => {
  const { screen, progress, pass } = openTerminal();
  const install = progress.start("Install");
  {
    using _launch = progress.start("Launch");
    pass(300);
    progress.note("a note");
  }
  pass(100);
  expect(screen.lines).toEqual(["a note", "⠹ Install (0.4 s)", "red ✖ Launch: failed (0.3 s)"]);
  install.done();
  expect(screen.lines.slice(1)).toEqual([
    "green ✔ Install (0.4 s)",
    "red ✖ Launch: failed (0.3 s)",
  ]);
});

test("a line that stays is written once, also when a result is written while work goes on", () => {
  const { screen, progress, pass } = openTerminal();
  const install = progress.start("Install");
  progress.start("Launch").done();
  pass(300);
  progress.settle();
  install.done();
  progress.settle();
  expect(screen.lines).toEqual(["green ✔ Launch (0.0 s)", "green ✔ Install (0.3 s)"]);
});

test("once anything was drawn, each phase gets its line with its time, short ones too", () => {
  const { screen, progress, pass } = openTerminal();
  progress.start("Check").done();
  pass(1000);
  const launch = progress.start("Launch");
  pass(400);
  launch.done();
  progress.start("Configure").done();
  expect(screen.lines).toEqual([
    "green ✔ Check (0.0 s)",
    "green ✔ Launch (0.4 s)",
    "green ✔ Configure (0.0 s)",
  ]);
});

test("what nodes are waited for has a line each, and their reasons are shown whole", () => {
  const { screen, progress, pass } = openTerminal();
  const reason = "word ".repeat(30).trim();
  progress.waiting(`waiting for 2 nodes:\n  agent_0: ${reason}\n  master_0: no answer`);
  pass(300);
  expect(screen.lines.join(" ").match(/word/g)).toHaveLength(30);
  expect(screen.lines.map((line) => line.slice(0, 12))).toEqual([
    "⠙ waiting fo",
    "   agent_0: ",
    "     word wo",
    "   master_0:",
  ]);
});

test("a wait is drawn until it is over", () => {
  const { screen, progress, pass } = openTerminal();
  progress.waiting("Docker does not answer");
  pass(300);
  expect(screen.lines).toEqual(["⠙ Docker does not answer"]);
  progress.waiting("");
  expect(screen.lines).toEqual([]);
  const { length } = screen.written;
  pass(1000);
  expect(screen.written).toHaveLength(length);
});

test("a wait that begins long after the last work isn't drawn at once", () => {
  const { screen, progress, pass } = openTerminal();
  progress.start("Launch").done();
  pass(60_000);
  progress.waiting("Docker does not answer");
  pass(200);
  expect(screen.written).toEqual([]);
});

test("when nothing is in progress, the lines stay as they are, and new work begins below them", () => {
  const { screen, progress, pass } = openTerminal();
  const launch = progress.start("Launch");
  pass(300);
  launch.done("2 machines");
  pass(1000);
  expect(screen.lines).toEqual(["green ✔ Launch: 2 machines (0.3 s)"]);
  progress.start("Install");
  pass(300);
  expect(screen.lines).toEqual(["green ✔ Launch: 2 machines (0.3 s)", "⠹ Install (0.3 s)"]);
});

test.each(["settle", "finish"] as const)(
  "after %s, another program has the terminal to itself",
  (hand) => {
    const { screen, progress, pass } = openTerminal();
    progress.start("Launch");
    progress.start("Prepare", "agent_0");
    pass(300);
    progress[hand]();
    expect(screen.lines).toEqual([]);
    const { length } = screen.written;
    pass(1000);
    expect(screen.written).toHaveLength(length);
  },
);

test("work that begins after the end isn't drawn", () => {
  const { screen, progress, pass } = openTerminal();
  progress.finish();
  progress.start("Launch");
  pass(1000);
  expect(screen.written).toEqual([]);
});

test("lines are redrawn ten times a second", () => {
  const { screen, progress, pass } = openTerminal();
  progress.start("Launch");
  pass(1000);
  const { length } = screen.written;
  pass(1000);
  expect(screen.written.slice(length)).toHaveLength(10);
});
