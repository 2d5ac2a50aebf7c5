import { ClusterError, type ErrorId, messageOf } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { outside } from "../../outside-text.ts";
import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import {
  type Connection,
  type RemoteResult,
  commandLimitMs,
} from "../../ssh/connection/connection.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { Progress, Step, Work } from "../../system/runtime.ts";
import { outsideLine, outsideLines, plainLines, withoutFullStop } from "../../system/printable.ts";
import { retry } from "../../system/retry.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { shellText } from "../../ssh/shell-text.ts";
import makeFoldersFile from "./make-folders.sh" with { type: "text" };
import scriptStart from "./script-start.sh" with { type: "text" };

/** One step of the installation on one node. It may run again after a lost connection. */
export interface Phase<Result = void> {
  readonly title: string;
  run(context: PhaseContext, signal: AbortSignal): Promise<Result>;
}

/** A connection to a node, and the node's reference for messages. */
export interface NodeConnection {
  readonly connection: Connection;
  /** `master_0` */
  readonly reference: string;
}

export interface PhaseContext extends NodeConnection {
  readonly node: NodeRecord;
  readonly step: Step;
  readonly progress: Progress;
}

/** Work on nodes, with the connections to them. */
export interface PhaseWork extends Omit<Work, "environment"> {
  readonly connections: ConnectionPool;
}

/**
 * Runs a phase on a node and shows its progress. It reopens a lost connection until two minutes
 * after the first loss.
 */
export async function runPhase<Result>(
  work: PhaseWork,
  phase: Phase<Result>,
  node: NodeRecord,
): Promise<Result> {
  const { connections, clock, progress } = work;
  const reference = nodeReference(node);
  using step = progress.start(phase.title, reference);
  const attempt = async (): Promise<Result> => {
    const connection = await connections.connect(node, work.signal);
    return phase.run({ node, reference, connection, step, progress }, work.signal);
  };
  const result = await attempt().catch((error: unknown) => {
    work.signal.throwIfAborted();
    if (!isConnectionLoss(error)) throw error;
    step.update(messageOf(error));
    const onFailure = (failure: ClusterError): void => step.update(messageOf(failure));
    return retry(attempt, { ...ruleOf(waits.reconnection, clock), onFailure }, work.signal);
  });
  step.done();
  return result;
}

/** Other transient failures were already retried where they occurred. */
const isConnectionLoss = (error: unknown): error is ClusterError =>
  error instanceof ClusterError &&
  error.transient &&
  (error.id === "connection-failed" || error.id === "transfer-failed");

/**
 * A POSIX shell script that runs on a node as root. It reports what it does with `now`, and why it
 * gives up with `fail`.
 */
interface RemoteScript {
  /** Appears in the command line, so that people (and tests) see what runs: `sh -s -- e2e-prepare …`. */
  readonly name: `e2e-${string}`;
  /** The body: function definitions, including `main`, which is called with the arguments. */
  readonly text: string;
  /** Public values: they are visible in the node's process list. */
  readonly arguments?: readonly string[];
  /** Absent: the usual limit. */
  readonly limitMs?: number;
  /** See RemoteCommand. */
  readonly task: string;
  /** The error message if the script fails, such as "master_0 could not be prepared". */
  readonly failure: string;
  readonly errorId: ErrorId;
  readonly onNow?: (text: string) => void;
}

/**
 * Returns the text for `sh -s`. The shell reads all of it before anything runs, so no program can
 * consume the rest from stdin.
 */
export function completeScript(body: string): string {
  return `${shellText(scriptStart)}${body}\nshift\nmain "$@" </dev/null\n`;
}

/** Runs the script in one round trip. Resolves if it succeeds; otherwise rejects with its own message. */
export async function runRemoteScript(
  connection: Connection,
  script: RemoteScript,
  signal: AbortSignal,
): Promise<RemoteResult> {
  const result = await connection.run(
    {
      argv: ["sh", "-s", "--", script.name, ...(script.arguments ?? [])],
      sudo: true,
      stdin: completeScript(script.text),
      limitMs: script.limitMs ?? commandLimitMs,
      task: script.task,
      ...(script.onNow && { onOutput: nowListener(script.onNow) }),
    },
    signal,
  );
  if (result.status === 0) return result;
  throw new ClusterError(script.errorId, `${script.failure}: ${reasonOf(result)}.`, {
    hint: `Its output is in the log. Try again, or pass ${optionName("keepOnFailure")} to keep the machine for inspection.`,
    facts: { status: result.status, output: outsideLines(result.stderr || result.stdout, 20) },
  });
}

export const scriptPhase = (
  title: string,
  scriptOf: (context: PhaseContext) => RemoteScript,
): Phase => ({
  title,
  run: async (context, signal) =>
    void (await runRemoteScript(context.connection, scriptOf(context), signal)),
});

interface NewFolders extends Pick<RemoteScript, "name" | "errorId"> {
  readonly paths: readonly string[];
  /** Names the folders in messages. */
  readonly what: string;
  /** See make-folders.sh. */
  readonly values?: Readonly<Record<string, string>>;
}

export async function makeFolders(
  { connection, reference }: NodeConnection,
  { name, errorId, paths, what, values }: NewFolders,
  signal: AbortSignal,
): Promise<void> {
  const script: RemoteScript = {
    name,
    text: shellText(makeFoldersFile, values),
    arguments: [...new Set(paths)],
    task: `creating ${what}`,
    failure: `${reference}: cannot create ${what}`,
    errorId,
  };
  await runRemoteScript(connection, script, signal);
}

const longestLine = 4096;

/** Calls back with each complete line `now: …` on stdout. */
function nowListener(
  onNow: (text: string) => void,
): (stream: "stdout" | "stderr", chunk: string) => void {
  const pending = { text: "" };
  return (stream, chunk) => {
    if (stream !== "stdout") return;
    const lines = `${pending.text}${chunk}`.split("\n");
    // Our own lines are short, so a line without an end isn't one of them.
    pending.text = (lines.pop() ?? "").slice(0, longestLine);
    for (const line of lines)
      if (line.startsWith("now: ")) onNow(outsideLine(line.slice("now: ".length)));
  };
}

/** Returns the script's own message if there is one, otherwise the last line of any output. */
export function reasonOf(result: RemoteResult): string {
  const lines = plainLines([result.stdout, result.stderr].join("\n"), 50).filter(
    (line) => !line.startsWith("now: "),
  );
  const own = lines.findLast((line) => line.startsWith("failed: "))?.slice("failed: ".length);
  const reason = own ?? lines.at(-1);
  return reason === undefined
    ? `it exited with status ${result.status}`
    : outside(withoutFullStop(reason));
}
