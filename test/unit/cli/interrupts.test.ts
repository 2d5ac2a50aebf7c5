import { outside } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import { Interrupts } from "../../../src/cli/interrupts.ts";
import type { ProcessLike } from "../../../src/cli/command.ts";

/** A process to which signals and uncaught errors can be sent. */
function openInterrupts() {
  const events = new EventEmitter();
  const heard: unknown[] = [];
  const host = Object.assign(events, {
    pid: 4711,
    exitCode: 0,
    kill: (pid: number, signal: string) =>
      heard.push({ pid, signal, listeners: events.eventNames() }),
  });
  const interrupts = new Interrupts(host as unknown as ProcessLike, {
    onFirst: () => heard.push("cleaning up"),
    onAbandoned: (remains) => heard.push(remains),
    onCrash: () => heard.push("crashed"),
  });
  return { host, interrupts, heard };
}

test.each([["SIGINT"], ["SIGTERM"]] as const)(
  "the first signal aborts the work, and a second %s ends the process by it",
  (signal) => {
    const { host, interrupts, heard } = openInterrupts();
    expect([interrupts.signal.aborted, interrupts.interruption]).toEqual([false, undefined]);
    host.emit("SIGTERM");
    expect(heard.splice(0)).toEqual(["cleaning up"]);
    expect(interrupts.interruption?.message).toBe("Interrupted by SIGTERM");
    host.emit(signal);
    expect(heard).toEqual([[], { pid: 4711, signal, listeners: [] }]);
    expect(interrupts.interruption?.signalName).toBe("SIGTERM");
  },
);

test.each([
  ["SIGHUP", 129],
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("if %s doesn't end the process, the exit code is still %d", (signal, exitCode) => {
  const { host, interrupts } = openInterrupts();
  interrupts.raise(signal);
  expect(host.exitCode).toBe(exitCode);
});

test("what is still left is described on the second signal, even if a description fails", () => {
  const { host, interrupts, heard } = openInterrupts();
  const describe = (): string => "2 machines are left";
  using _once = interrupts.onAbandon(describe);
  {
    using _again = interrupts.onAbandon(describe);
    using _gone = interrupts.onAbandon(() => "gone before");
  }
  using _quiet = interrupts.onAbandon(() => "");
  using _broken = interrupts.onAbandon(() => {
    throw new Error("no answer");
  });
  host.emit("SIGINT");
  host.emit("SIGINT");
  expect(heard[1]).toEqual([
    "2 machines are left",
    `Cannot tell what is left: ${outside("no answer")}`,
  ]);
});

test.each(["uncaughtException", "unhandledRejection"])(
  "after an %s the work can clean up",
  (event) => {
    const { host, interrupts, heard } = openInterrupts();
    const error = new Error("nobody catches this");
    host.emit(event, error);
    host.emit(event, new Error("a later one"));
    expect(heard).toEqual(["crashed", "crashed"]);
    expect(interrupts.crash).toEqual({ status: "rejected", reason: error });
    expect(interrupts.signal.reason).toBe(error);
    expect(interrupts.interruption).toBeUndefined();
  },
);

test("after the end, signals and errors have their usual effect again", () => {
  const { host, interrupts } = openInterrupts();
  expect(host.eventNames()).toEqual(
    expect.arrayContaining(["SIGINT", "SIGTERM", "uncaughtException"]),
  );
  interrupts.close();
  expect(host.eventNames()).toEqual([]);
});
