import { type ChildProcess, spawn } from "node:child_process";
import { delimiter, isAbsolute } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isatty } from "node:tty";
import { errorCode } from "../files/private-file.ts";
import type { Environment } from "../runtime.ts";
import { afterAbort, onAbort, withinLimit } from "../time-limit.ts";

export interface ProgramRun {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Environment;
  /** The folder that the program starts in; if absent, ours. */
  readonly cwd?: string;
  /** The program's stdin; if absent, empty. If a stream fails, so does the run once the program has ended. */
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /**
   * Whether it may ask a person: it stays in the terminal's session, and has the terminal's input
   * if that is ours. Without a terminal, its stdin is empty.
   */
  readonly asksPerson?: true;
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
 * Runs a program on this machine until it ends; any status resolves. It has its own session, so
 * that only we react to Ctrl-C on the terminal. Rejects with the system's error (`ENOENT`: there is
 * no such program), and with the signal's reason once the aborted program has ended.
 */
export async function runProgram(run: ProgramRun, signal: AbortSignal): Promise<ProgramEnd> {
  signal.throwIfAborted();
  const [program, ...words] = run.argv;
  const child = spawn(program, words, {
    env: { ...run.environment },
    detached: run.asksPerson === undefined,
    stdio: [run.asksPerson === true && isatty(0) ? "inherit" : "pipe", "pipe", "pipe"],
    cwd: run.cwd,
  });
  const ended = endOf(child);
  if (!hasStreams(child)) await ended;
  using _asked = onAbort(signal, () => child.kill("SIGTERM"));
  using _killed = afterAbort(signal, graceMs, () => killAtOnce(child));
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (chunk: string) => {
      written[name] = withEnd(written[name], chunk, run.keptCharacters ?? 64 * 1024 * 1024);
      run.onOutput?.(chunk);
    });
  }
  const fed = child.stdin === null ? Promise.resolve() : feed(child.stdin, run.stdin ?? "");
  fed.catch(() => {});
  const status = await ended;
  signal.throwIfAborted();
  await fed;
  return { status: status ?? undefined, ...written };
}

interface RunLimit {
  readonly limitMs: number;
  /** The error of a program that exceeds the limit. */
  readonly tooSlow: () => Error;
  /** The error if there is no such program, or this user may not run it. */
  readonly missing: (cause: unknown) => Error;
}

/** Runs a program like `runProgram`, with a time limit. */
export async function runWithin(
  run: ProgramRun,
  { limitMs, tooSlow, missing }: RunLimit,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  const attempt = async (inner: AbortSignal): Promise<ProgramEnd> =>
    runOrMissing(run, missing, inner);
  const onLimit = (): never => {
    throw tooSlow();
  };
  return await withinLimit(limitMs, attempt, onLimit, signal);
}

/**
 * Runs a program like `runProgram`. Rejects with `missing` if there is no such program, or this
 * user may not run it.
 */
export async function runOrMissing(
  run: ProgramRun,
  missing: (cause: unknown) => Error,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  return await runProgram(run, signal).catch((error: unknown) => {
    throw errorCode(error) === "ENOENT" || errorCode(error) === "EACCES" ? missing(error) : error;
  });
}

/**
 * Like `runProgram` for a program without input whose output may be gigabytes: yields what it
 * writes to stdout as it arrives, and returns how it ended. Ends the program if nobody reads on.
 */
export async function* readProgram(
  { argv: [program, ...words], environment }: Pick<ProgramRun, "argv" | "environment">,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, ProgramEnd, undefined> {
  signal.throwIfAborted();
  const child = spawn(program, words, {
    env: { ...environment },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = endOf(child);
  if (!hasStreams(child)) await ended;
  const stderr = collected(child.stderr);
  using _ = onAbort(signal, () => killAtOnce(child));
  try {
    for await (const chunk of child.stdout as AsyncIterable<Uint8Array>) yield chunk;
    const status = await ended;
    return { status: status ?? undefined, stdout: "", stderr: stderr() };
  } finally {
    killAtOnce(child);
    // Until then it may still write files.
    await ended.catch(() => {});
    signal.throwIfAborted();
  }
}

/** Rejects if the program can't be started. */
function endOf(child: ChildProcess): Promise<number | null> {
  const ended = Promise.withResolvers<number | null>();
  child.once("error", ended.reject).once("close", ended.resolve);
  ended.promise.catch(() => {});
  return ended.promise;
}

/** A program that can't be started because too many files are open has none. */
const hasStreams = ({ stderr }: ChildProcess): boolean => (stderr ?? undefined) !== undefined;

const mostErrorCharacters = 1024 * 1024;

function collected(stream: Readable): () => string {
  const written = { text: "" };
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    written.text = withEnd(written.text, chunk, mostErrorCharacters);
  });
  return () => written.text;
}

/** If a program ends without reading its input, its status decides. */
async function feed(stdin: Writable, input: NonNullable<ProgramRun["stdin"]>): Promise<void> {
  stdin.on("error", () => {});
  if (typeof input === "string" || input instanceof Uint8Array) return void stdin.end(input);
  await pipeline(input, stdin).catch((error: unknown) => {
    const code = errorCode(error);
    if (code !== "EPIPE" && code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  });
}

/**
 * How long an aborted program may take to end. One that hangs, or whose output a hanging child
 * keeps open, is killed then.
 */
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

/**
 * Variables that helper programs need to find programs, libraries and temporary files, and the
 * user's name and language.
 */
const neededNames =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+|(?:DY)?LD_LIBRARY_PATH)$/;

/** Variables that say which desktop, display, browser and proxies the user has. */
const desktopNames =
  /^(?:DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_SESSION_BUS_ADDRESS|BROWSER|DESKTOP_SESSION|(?:XDG|KDE|GNOME|GTK|GDK|QT|MOZ)_\w+|WSL\w+|SSH_(?:CONNECTION|CLIENT|TTY)|(?:HTTPS?|ALL|NO)_PROXY)$/i;

/** Credentials of this program's clouds, and variables that take over an executable compiled by Bun. */
const secretNames = /^(?:CLOUD_|BUN_(?:OPTIONS$|BE_BUN$|INSPECT))/;

/**
 * For a program that doesn't need the user's settings. An attacker who takes it over, such as a
 * guest that escapes from its virtual machine, finds no credentials in its environment.
 */
export function minimalEnvironment(environment: Environment): Environment {
  return filtered(environment, (name) => neededNames.test(name));
}

/** For a program with its own settings and credentials in the environment, such as a container engine. */
export function environmentWithoutSecrets(environment: Environment): Environment {
  return filtered(environment, (name) => !secretNames.test(name));
}

/** Whether the user's browser needs a variable. It runs other people's code, and never needs a credential. */
export const isForDesktop = (name: string): boolean =>
  neededNames.test(name) || desktopNames.test(name);

/** For programs that every system has. */
export const systemEnvironment = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C" } as const;

const searchedNames = /^(?:PATH|(?:DY)?LD_LIBRARY_PATH)$/;

/** Entries that are empty or relative lead into the current folder, which may be somebody else's checkout. */
function filtered(environment: Environment, isKept: (name: string) => boolean): Environment {
  const kept = Object.entries(environment).filter(([name]) => isKept(name));
  return Object.fromEntries(
    kept.flatMap(([name, value]) => {
      if (value === undefined || !searchedNames.test(name)) return [[name, value]];
      const folders = value.split(delimiter).filter(isAbsolute).join(delimiter);
      return folders === "" ? [] : [[name, folders]];
    }),
  );
}

/**
 * Opens a URL in the user's browser. Returns whether a browser could be started; whether it shows
 * the page is unknown.
 */
export async function openBrowser(url: string): Promise<boolean> {
  const { default: open } = await import("open");
  try {
    const opener = await open(url);
    // Without this, the program would keep running until the browser ends.
    opener.unref();
    return true;
  } catch {
    return false;
  }
}

/** A command that waits in a separate process; see `deferCommand`. */
export interface DeferredCommand {
  /** Runs it now. Resolves with any exit status, and with none if the command took longer than its limit. */
  run(): Promise<ProgramEnd>;
}

/**
 * Prepares a command that undoes something. It runs on request, or when this process dies before
 * that, even by SIGKILL: the command's process waits for the end of a pipe that only this process
 * can write to. Rejects with the system's error if that process can't be started.
 */
export async function deferCommand(
  argv: readonly [string, ...string[]],
  environment: Environment,
  limitMs: number,
): Promise<DeferredCommand> {
  const child = spawn("/bin/sh", ["-c", 'read -r _ || :; exec "$@"', "sh", ...argv], {
    env: { ...environment },
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const ended = endOf(child);
  if (!hasStreams(child)) await ended;
  const stderr = collected(child.stderr);
  child.stdin.on("error", () => {});
  return {
    run: async () => {
      child.stdin.end();
      const timer = setTimeout(() => killAtOnce(child), limitMs);
      const status = await ended.finally(() => clearTimeout(timer));
      return { status: status ?? undefined, stdout: "", stderr: stderr() };
    },
  };
}
