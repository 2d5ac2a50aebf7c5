/** Commands that a signal ends, and what they leave. */
import { expect } from "bun:test";
import type { Ended } from "./executable.ts";
import type { TestProgram } from "./test-backend.ts";

interface Early {
  /** What the program says when it has come so far. */
  readonly said: string;
  readonly signal: "SIGINT" | "SIGKILL";
}

/** Starts a command, and ends it once it has said this. */
export async function endAt(
  program: Pick<TestProgram, "start">,
  { said, signal }: Early,
  ...[words, options]: Parameters<TestProgram["start"]>
): Promise<Ended> {
  const running = program.start(words, options);
  await running.said(said);
  running.interrupt(signal);
  return running.ended;
}

/** Interrupts a command as Ctrl-C does, and asserts that the signal ends it without a result. */
export async function interruptAt(
  program: Pick<TestProgram, "start">,
  said: string,
  words: readonly string[],
): Promise<void> {
  const { status, signal, stdout } = await endAt(program, { said, signal: "SIGINT" }, words);
  expect({ status, signal, stdout }).toEqual({ status: undefined, signal: "SIGINT", stdout: "" });
}

/** Asserts that `doctor` knows what a killed create has left, and that `destroy` removes it. */
export async function destroyRemains(
  program: Pick<TestProgram, "run">,
  clusterId: string,
): Promise<void> {
  expect((await program.run(["doctor"])).stdout).toContain(
    `cluster "${clusterId}" (its create was interrupted)`,
  );
  expect(await program.run(["destroy", "-c", clusterId])).toMatchObject({
    status: 0,
    stdout: `${clusterId}\n`,
  });
}
