import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import type { Environment } from "../runtime.ts";
import { afterAbort, onAbort, slowNote } from "../time-limit.ts";
import { ifKilled } from "./if-killed.ts";

export interface ForegroundRun {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Environment;
  readonly cwd: string;
  /** Whether the user's terminal belongs to the program too, which then gets Ctrl-C by itself. */
  readonly isTerminal: boolean;
  /** The signal that the program gets when ours is aborted, by the reason. */
  readonly signalOf: (reason: unknown) => NodeJS.Signals;
  /**
   * Receives all output, and stdin is empty; absent: the program has our own streams. A promise
   * makes the program wait.
   */
  readonly onOutput?:
    | ((stream: "stdout" | "stderr", chunk: string) => void | Promise<void>)
    | undefined;
  /** Called if the program has ended for some seconds, but what it has started still holds its output open. */
  readonly onHeld?: ((status: number) => void) | undefined;
}

/** How long an interrupted program may take to clean up. */
const graceMs = 10_000;

/**
 * Runs a user's program in place of ours, and resolves with its status: 128 + n after signal n. An abort passes the
 * signal on, waits for the program's end, and rejects with the abort's reason. Rejects with the system's error if the
 * program can't be started.
 */
export async function runForeground(run: ForegroundRun, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const { onOutput, isTerminal, environment, cwd } = run;
  const [program, ...words] = run.argv;
  // Without a terminal, it has a process group of its own, so that whatever it starts gets the signals too.
  const child = spawn(program, words, {
    env: { ...environment },
    cwd,
    detached: !isTerminal,
    stdio: onOutput === undefined ? "inherit" : ["ignore", "pipe", "pipe"],
  });
  const ended = Promise.withResolvers<number>();
  child
    .once("error", ended.reject)
    .once("close", (status, name) => ended.resolve(statusOf(status, name)));
  const { pid, stdout, stderr } = child;
  if (pid === undefined) return await ended.promise;
  const target = isTerminal ? pid : -pid;
  if (onOutput !== undefined && stdout !== null && stderr !== null) {
    pass(stdout, (chunk) => onOutput("stdout", chunk));
    pass(stderr, (chunk) => onOutput("stderr", chunk));
  }
  using _watching = ifKilled({ line: 'kill -s TERM -- "$1"', word: String(target) }, environment);
  const end = (name: NodeJS.Signals): void => {
    // The terminal has sent it already.
    if (!isTerminal || run.signalOf(signal.reason) !== "SIGINT") send(target, name);
  };
  using _asked = onAbort(signal, () => end(run.signalOf(signal.reason)));
  using _killed = afterAbort(signal, graceMs, () => end("SIGKILL"));
  using held = new DisposableStack();
  child.once("exit", (status, name) => {
    held.use(slowNote(() => run.onHeld?.(statusOf(status, name))));
  });
  const status = await ended.promise;
  signal.throwIfAborted();
  return status;
}

const statusOf = (status: number | null, name: NodeJS.Signals | null): number =>
  name === null ? (status ?? 1) : 128 + constants.signals[name];

/** A group of processes gets it from a shell, because only the edges of this program may use `process`. */
function send(target: number, name: NodeJS.Signals): void {
  const words = ["-c", 'kill -s "$1" -- "$2"', "sh", name.slice("SIG".length), String(target)];
  spawn("/bin/sh", words, { stdio: "ignore", env: {} }).on("error", () => {});
}

function pass(stream: Readable, add: (chunk: string) => void | Promise<void>): void {
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    const taken = add(chunk);
    if (taken === undefined) return;
    stream.pause();
    const resume = (): void => void stream.resume();
    taken.then(resume, resume);
  });
}
