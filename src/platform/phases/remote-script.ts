import { ClusterError } from "../../errors.ts";
import type { ErrorId } from "../../errors.ts";
import type { Connection, RemoteResult } from "../../ssh/connection/connection.ts";

/** A POSIX shell script that runs on a node as root. It reports what it does with `now`, and why it gives up with `fail`. */
export interface RemoteScript {
  /** Appears in the command line, so that people (and tests) see what runs: `sh -s -- e2e-prepare …`. */
  readonly name: `e2e-${string}`;
  /** The body: function definitions, including `main`, which is called with the arguments. */
  readonly text: string;
  /** Public values: they are visible in the node's process list. */
  readonly arguments: readonly string[];
  readonly limitMs: number;
  /** See RemoteCommand. */
  readonly task: string;
  /** The error message if the script fails, such as "master_0 could not be prepared". */
  readonly failure: string;
  readonly errorId: ErrorId;
  readonly onNow?: (text: string) => void;
}

const prelude = `set -eu
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
now() { printf 'now: %s\\n' "$*"; }
fail() {
  printf 'failed: %s\\n' "$*" >&2
  exit 1
}
`;

/**
 * Returns the whole text for `sh -s`. The shell reads all of it before anything runs, so no program that it starts can consume the rest from stdin.
 */
export function completeScript(body: string): string {
  return `${prelude}${body}\nshift\nmain "$@" </dev/null\n`;
}

/** Runs the script in one round trip. Resolves if it succeeds; otherwise rejects with its own message. */
export async function runRemoteScript(
  connection: Connection,
  script: RemoteScript,
  signal: AbortSignal,
): Promise<RemoteResult> {
  const result = await connection.run(
    {
      argv: ["sh", "-s", "--", script.name, ...script.arguments],
      sudo: true,
      stdin: completeScript(script.text),
      limitMs: script.limitMs,
      task: script.task,
      ...(script.onNow && { onOutput: nowListener(script.onNow) }),
    },
    signal,
  );
  if (result.status === 0) return result;
  throw new ClusterError(script.errorId, `${script.failure}: ${reasonOf(result)}.`, {
    hint: "What it printed is in the log. Try again, or with `keepOnFailure`, which leaves the machine to be looked at.",
    facts: { status: result.status, output: lastLines(result.stderr || result.stdout, 20) },
  });
}

const longestLine = 4096;

/** Calls back with each complete line `now: …` on stdout. */
function nowListener(onNow: (text: string) => void): (stream: "stdout" | "stderr", chunk: string) => void {
  const pending = { text: "" };
  return (stream, chunk) => {
    if (stream !== "stdout") return;
    const lines = `${pending.text}${chunk}`.split("\n");
    // Our own lines are short, so a line without an end isn't one of them.
    pending.text = (lines.pop() ?? "").slice(0, longestLine);
    for (const line of lines) if (line.startsWith("now: ")) onNow(line.slice("now: ".length));
  };
}

/** Returns the script's own message if there is one, otherwise the last line of any output. */
export function reasonOf(result: RemoteResult): string {
  const lines = lastLines(`${result.stdout}\n${result.stderr}`, 50).filter((line) => !line.startsWith("now: "));
  const word = lines.findLast((line) => line.startsWith("failed: "))?.slice("failed: ".length);
  return (word ?? lines.at(-1) ?? `it ended with status ${result.status}`).replace(/[.\s]+$/, "");
}

/** Skips blank lines. */
export function lastLines(text: string, count: number): string[] {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .slice(-count);
}
