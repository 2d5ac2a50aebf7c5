import type { Environment } from "../runtime.ts";
import { type ChildProcess, spawn } from "node:child_process";

export interface ProgramRun {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Environment;
  /** The folder that the program starts in; if absent, ours. */
  readonly cwd?: string;
  /** The program's stdin; if absent, empty. */
  readonly stdin?: string | Uint8Array;
  /** The minimum number of characters kept per stream. Only the end of longer output is kept. Default: 64 Mi. */
  readonly keptCharacters?: number;
  /** Called with each piece of output from either stream. */
  readonly onOutput?: (chunk: string) => void;
}

export interface ProgramEnd {
  /** `undefined` if a signal ended the program. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program on this machine until it ends; any status resolves. It has its own session, so that only we react to Ctrl-C on the terminal. Rejects
 * with the system's error (`ENOENT`: there is no such program), and with the signal's reason once the aborted program has ended.
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
  const timers: ReturnType<typeof setTimeout>[] = [];
  const onAbort = (): void => {
    child.kill("SIGTERM");
    timers.push(setTimeout(() => killAtOnce(child), graceMs));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      written[name] = withEnd(written[name], chunk, run.keptCharacters ?? 64 * 1024 * 1024);
      run.onOutput?.(chunk);
    });
  }
  // If a program ends without reading its input, its status decides.
  child.stdin.on("error", () => {}).end(run.stdin ?? "");
  try {
    const status = await ended.promise;
    signal.throwIfAborted();
    return { status: status ?? undefined, ...written };
  } finally {
    signal.removeEventListener("abort", onAbort);
    for (const timer of timers) clearTimeout(timer);
  }
}

/** How long an aborted program may take to end. One that hangs, or whose output a hanging child keeps open, is killed then. */
const graceMs = 3_000;

function killAtOnce(child: ChildProcess): void {
  child.kill("SIGKILL");
  // A child of its own may hold these open.
  child.stdout?.destroy();
  child.stderr?.destroy();
}

/** Cuts only text longer than twice the limit, because each cut costs a copy. */
function withEnd(text: string, chunk: string, most: number): string {
  const whole = text + chunk;
  return whole.length > 2 * most ? whole.slice(-most) : whole;
}
