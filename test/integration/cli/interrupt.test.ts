/** What signals do to programs built on cli/, seen from outside. */
import { expect, test } from "bun:test";
import { runOnTerminal, runShell, startExample } from "./start-example.ts";

/** A shell's line that resolves $pid once it holds, and writes what it shows to the file $shown, which goes with the shell. */
const holdInBackground =
  'shown=$(mktemp); trap \'rm -f "$shown"\' EXIT; $EXAMPLE hold >"$shown" 2>&1 & pid=$!; ' +
  'until grep -q holding "$shown"; do sleep 0.05; done';

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s cleans up, then ends the program by itself", async (signal) => {
  const running = startExample(["hold"]);
  await running.until("holding");
  running.child.kill(signal);
  const end = await running.ended();
  expect(end.signal).toBe(signal);
  expect(end.stdout).toBe("");
  expect(end.stderr).toContain(
    "Interrupted: cleaning up (interrupt again to stop at once)\ncleaned up\nagent_0: Work: stopped\n",
  );
  expect(end.stderr).toEndWith(`Error: Interrupted by ${signal}\n[interrupted]\n`);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("a shell sees %s as %d", async (signal, status) => {
  const line = `${holdInBackground}; kill -${signal} $pid; wait $pid; echo $?`;
  expect((await runShell(line)).stdout).toBe(`${status}\n`);
});

// Shows R92.
test("a second signal ends at once and says what is left", async () => {
  const running = startExample(["hold", "--cleanup", "50s"]);
  await running.until("holding");
  running.child.kill("SIGINT");
  await running.until("Interrupted");
  running.child.kill("SIGTERM");
  const end = await running.ended();
  expect(end.signal).toBe("SIGTERM");
  expect(end.stderr).toEndWith("2 machines are left; they terminate automatically at 12:00\n");
});

test("an interrupted command's JSON is whole", async () => {
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

test("Ctrl-C on a terminal takes the live lines away and ends by the signal", async () => {
  const end = await runOnTerminal(["hold"], { "Work agent_0": "\x03" });
  expect(end.signal).toBe("SIGINT");
  expect(end.shown).toContain("Interrupted: cleaning up");
  expect(end.shown).toContain("[interrupted]");
});

// Elsewhere a program can't know that hang-ups were ignored before it began.
test.skipIf(process.platform !== "linux")("under nohup a hang-up goes on being ignored", async () => {
  const line =
    `trap '' HUP; ${holdInBackground}; kill -HUP $pid; sleep 0.5; kill -TERM $pid; wait $pid; ` +
    'status=$?; cat "$shown"; echo $status';
  const { stdout } = await runShell(line);
  expect(stdout).toEndWith("Error: Interrupted by SIGTERM\n[interrupted]\n143\n");
});
