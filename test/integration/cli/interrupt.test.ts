/** How programs built on cli/ react to signals, tested from outside. */
import { expect, test } from "bun:test";
import { runOnTerminal, runShell, startExample } from "./start-example.ts";

/** A shell line that waits until the program holds, sets $pid, and writes its output to the file $shown, which the shell removes at its end. */
const holdInBackground =
  'shown=$(mktemp); trap \'rm -f "$shown"\' EXIT; $EXAMPLE hold >"$shown" 2>&1 & pid=$!; ' +
  'until grep -q holding "$shown"; do sleep 0.05; done';

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "after %s the program cleans up, then ends by that signal",
  async (signal) => {
    const running = startExample(["hold"]);
    await running.until("holding");
    running.child.kill(signal);
    const end = await running.ended();
    expect(end.signal).toBe(signal);
    expect(end.stdout).toBe("");
    expect(end.stderr).toMatch(
      /Interrupted: cleaning up \(interrupt again to stop at once\)\ncleaned up\nagent_0: Work: stopped \(.* s\)\n/,
    );
    expect(end.stderr).toEndWith(`Error: Interrupted by ${signal}\n[interrupted]\n`);
  },
);

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("a shell sees %s as %d", async (signal, status) => {
  const line = `${holdInBackground}; kill -${signal} $pid; wait $pid; echo $?`;
  expect((await runShell(line)).stdout).toBe(`${status}\n`);
});

// Shows R93.
test("a second signal ends the program at once, with a message about what is left", async () => {
  const running = startExample(["hold", "--cleanup", "50s"]);
  await running.until("holding");
  running.child.kill("SIGINT");
  await running.until("Interrupted");
  running.child.kill("SIGTERM");
  const end = await running.ended();
  expect(end.signal).toBe("SIGTERM");
  expect(end.stderr).toEndWith("2 machines are left; they terminate automatically at 12:00\n");
});

test("on a terminal, the message about what is left is the last line", async () => {
  const end = await runOnTerminal(["hold", "--cleanup", "50s"], {
    "Work agent_0": "\x03",
    Interrupted: "\x03",
  });
  expect(end.signal).toBe("SIGINT");
  expect(end.shown).toEndWith("2 machines are left; they terminate automatically at 12:00\r\n");
});

test("the JSON of an interrupted command is complete", async () => {
  const running = startExample(["hold", "--output", "json"]);
  await running.until("holding");
  running.child.kill("SIGINT");
  const end = await running.ended();
  expect(JSON.parse(end.stdout)).toEqual({
    schemaVersion: 1,
    error: { id: "interrupted", message: "Interrupted by SIGINT", facts: { signal: "SIGINT" } },
  });
  expect(end.signal).toBe("SIGINT");
});

test("Ctrl-C on a terminal removes the live lines, and the program ends by the signal", async () => {
  const end = await runOnTerminal(["hold"], { "Work agent_0": "\x03" });
  expect(end.signal).toBe("SIGINT");
  expect(end.shown).toContain("Interrupted: cleaning up");
  expect(end.shown).toContain("[interrupted]");
});

// Only on Linux can a program know that SIGHUP was ignored when it started. The kernel drops an ignored signal at once.
test.skipIf(process.platform !== "linux")("under nohup, SIGHUP is still ignored", async () => {
  const line =
    `trap '' HUP; ${holdInBackground}; kill -HUP $pid; kill -TERM $pid; wait $pid; ` +
    'status=$?; cat "$shown"; echo $status';
  const { stdout } = await runShell(line);
  expect(stdout).toEndWith("Error: Interrupted by SIGTERM\n[interrupted]\n143\n");
});
