import { spawn } from "node:child_process";
import type { Environment } from "../environment.ts";

export interface ProgramRun {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Environment;
  /** The folder that it starts in; ours where absent. */
  readonly cwd?: string;
  /** What it reads from its stdin; nothing where absent. */
  readonly stdin?: string | Uint8Array;
  /** Of each stream, characters that are kept at least: of a longer one the end. Absent: 64 Mi. */
  readonly keptCharacters?: number;
  /** Called with output of either stream as it comes. */
  readonly onOutput?: (chunk: string) => void;
}

export interface ProgramEnd {
  /** `undefined` where a signal ended it. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program of this machine to its end; any status resolves. It is a session of its own, so that Ctrl-C on the terminal is ours alone to
 * answer. Rejects with the system's error (`ENOENT`: there is no such program), and with the signal's reason once the aborted program has ended.
 */
export async function runProgram(run: ProgramRun, signal: AbortSignal): Promise<ProgramEnd> {
  signal.throwIfAborted();
  const [program, ...words] = run.argv;
  const child = spawn(program, words, {
    env: { ...run.environment },
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    ...(run.cwd !== undefined && { cwd: run.cwd }),
  });
  const ended = Promise.withResolvers<number | null>();
  child.once("error", ended.reject).once("close", ended.resolve);
  const onAbort = (): void => void child.kill("SIGTERM");
  signal.addEventListener("abort", onAbort, { once: true });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      written[name] = withEnd(written[name], chunk, run.keptCharacters ?? 64 * 1024 * 1024);
      run.onOutput?.(chunk);
    });
  }
  // A program that ends without reading its input is judged by its status.
  child.stdin.on("error", () => {}).end(run.stdin ?? "");
  try {
    const status = await ended.promise;
    signal.throwIfAborted();
    return { status: status ?? undefined, ...written };
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Cut only where it has become twice as long, since each cut costs a copy. */
function withEnd(text: string, chunk: string, most: number): string {
  const whole = text + chunk;
  return whole.length > 2 * most ? whole.slice(-most) : whole;
}
