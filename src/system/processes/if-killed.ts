import type { Subprocess } from "bun";
import type { Environment } from "../runtime.ts";
import { minimalEnvironment } from "./run-program.ts";

/**
 * What a shell waits for: descriptor 3 ends when the program that holds the other end does. It
 * outlives the signals of a terminal.
 */
const untilTheEnd = "trap '' HUP INT QUIT TERM TTOU; read -r _ <&3; ";

interface Line {
  /** A line of sh; `$1` is the word. Its stdin is this program's if that is passed on. */
  readonly line: string;
  readonly word?: string;
  readonly hasStdin?: boolean;
}

/** Runs a line of sh if this program is killed, which no handler here can notice, before this is disposed of. */
export function ifKilled(
  { line, word = "", hasStdin = false }: Line,
  environment: Environment,
): Disposable {
  const watching = Bun.spawn(["/bin/sh", "-c", untilTheEnd + line, "sh", word], {
    stdio: [hasStdin ? "inherit" : "ignore", "ignore", "ignore", "pipe"],
    env: minimalEnvironment(environment),
  });
  watching.unref();
  return { [Symbol.dispose]: () => watching.kill("SIGKILL") };
}

/**
 * Tells a child to end if this program is killed: an ssh would hold the user's terminal, in raw
 * mode, and a `cat` take what is typed for the next program.
 */
export function endWithThisProgram(child: Subprocess, environment: Environment): void {
  const watching = ifKilled({ line: 'kill "$1"', word: String(child.pid) }, environment);
  // Its number may be another's afterwards.
  child.exited.then(() => watching[Symbol.dispose]()).catch(() => {});
}
