import { basename, dirname, join } from "node:path";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import { createOutputTail, lineSplitter } from "../ssh/connection/command-output.ts";
import type { Connection, RemoteCommand } from "../ssh/connection/connection.ts";
import { sessionCommand } from "../ssh/session/session-line.ts";
import { brokenPipeStatus, sshFailed } from "../ssh/session/ssh-process.ts";
import { accepted } from "../model/checked.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import type { Runtime } from "../system/runtime.ts";
import { eitherSignal } from "../system/time-limit.ts";
import {
  assertKeyIsHere,
  openConnections,
  openMaskedConnections,
  warnIfCutShort,
  withAdvice,
} from "./connections.ts";
import { correctSleptClocks } from "./correct-slept-clocks.ts";
import { wholeLines } from "./events/kept-output.ts";
import { runRecorder } from "./events/record-event.ts";
import { findNode } from "./find-cluster.ts";
import { type FetchRequest, checkTarget, fetchFiles } from "./fetch.ts";
import { type RunRequest, type RunWork, hideOwnValues, sessionScript } from "./run-on-node.ts";
import { syncCheckout } from "./sync-checkout.ts";

export interface NodeOutcome {
  readonly node: NodeRecord;
  /** The command's exit status; 255 if the node can't be reached, or if a file can't be fetched from it. */
  readonly status: number;
  /** The last part of each stream. */
  readonly stdout: string;
  readonly stderr: string;
  /** Why there is no exit status of the command; undefined if there is one. */
  readonly error: ClusterError | undefined;
}

/**
 * Receives each line of each node's output as soon as it is complete, without its line break. A
 * promise makes that node wait.
 */
type OnNodeLine = (
  node: NodeRecord,
  stream: "stdout" | "stderr",
  line: string,
) => void | Promise<void>;

export interface NodesRun extends Omit<RunRequest, "node" | "isTerminal"> {
  readonly nodes: readonly NodeRecord[];
  /** Absent: the output is only in the outcomes. */
  readonly onLine?: OnNodeLine | undefined;
  /** Whether nobody reads the lines any more. A command that prints more to stdout then ends, as by SIGPIPE. */
  readonly isOutputClosed?: () => boolean;
  /**
   * Whether files go to the paths that were given, for a single node. Otherwise each node has a
   * folder of its name beside them.
   */
  readonly keepsPaths?: boolean;
}

const loginsAtOnce = 64;
/** The most characters of both streams of all nodes together that are kept in memory. */
const mostKeptOfAll = 64 * 1024 * 1024;
const mostKept = 4 * 1024 * 1024;
/** Enough for the message that a login shell is unsuitable. */
const leastKept = 4 * 1024;

/** How many characters of a stream are kept. */
const limitOf = ({ onLine, nodes }: NodesRun): number =>
  onLine === undefined
    ? Math.min(mostKept, Math.floor(mostKeptOfAll / (2 * nodes.length)))
    : leastKept;

/**
 * Runs a command as root on several nodes concurrently, with an empty stdin. A node that fails doesn't stop the others.
 * An abort ends the command on all nodes. Before anything runs, rejects if a file can't be written to its local path,
 * or if the checkout can't be synced.
 */
export async function runOnNodes(
  work: RunWork,
  cluster: ClusterRecord,
  request: NodesRun,
): Promise<readonly NodeOutcome[]> {
  hideOwnValues(request, work);
  for (const node of request.nodes)
    for (const fetch of fetchesOf(node, request)) accepted(await checkTarget(fetch));
  await assertKeyIsHere(cluster);
  await warnIfCutShort(cluster, work);
  work.onConnecting();
  if (request.checkout !== undefined) {
    await using masked = openMaskedConnections(cluster, work);
    await syncCheckout(
      { connections: masked, progress: work.progress, signal: work.signal },
      cluster,
      request.checkout,
    );
  }
  await using pool = openConnections(cluster.directory, work);
  await correctSleptClocks(cluster, pool, work, work.signal);
  const connect = async (node: NodeRecord): Promise<Connection> => pool.connect(node, work.signal);
  const run = async (node: NodeRecord): Promise<NodeOutcome> => {
    try {
      // A named node may be stopped, or without an address.
      findNode(cluster, node.id);
      return await runOnOneNode(cluster, request, { node, connect, runtime: work }, work.signal);
    } catch (error) {
      return await failed(cluster, { node, error }, work.signal);
    }
  };
  const ended: NodeOutcome[] = [];
  const outputs = () =>
    ended.map(({ node, stdout, stderr }) => ({
      node: nodeReference(node),
      text: [stdout, stderr].map((text) => wholeLines(text, limitOf(request))).join("\n"),
    }));
  const recorded = { ...request, outputs: request.keepsOutput === true ? outputs : undefined };
  using recorder = runRecorder(cluster, recorded, request.nodes, work);
  const outcomes = await mapConcurrently(request.nodes, loginsAtOnce, run, work.signal);
  // Those that failed first, because a record has no place for all.
  ended.push(...outcomes.toSorted((a, b) => Number(b.status !== 0) - Number(a.status !== 0)));
  const problem = outcomes.find(({ error }) => error !== undefined)?.error?.message;
  const statuses = outcomes.map(({ status }) => status);
  recorder.end(statuses, problem);
  return outcomes;
}

interface NodeTask {
  readonly node: NodeRecord;
  readonly connect: (node: NodeRecord) => Promise<Connection>;
  readonly runtime: Runtime;
}

async function runOnOneNode(
  cluster: ClusterRecord,
  request: NodesRun,
  { node, connect, runtime }: NodeTask,
  signal: AbortSignal,
): Promise<NodeOutcome> {
  const { onLine } = request;
  const script = sessionScript(cluster, node, request);
  const lines = onLine && linesOf((stream, line) => onLine(node, stream, line));
  // What a node has printed stays, even if its connection is lost.
  const limit = limitOf(request);
  const kept = { stdout: createOutputTail(limit), stderr: createOutputTail(limit) };
  const texts = () => ({ stdout: kept.stdout.text(), stderr: kept.stderr.text() });
  const closed = new AbortController();
  const command: RemoteCommand = {
    ...sessionCommand(script),
    isOutputHidden: true,
    namesHolders: true,
    keptCharacters: leastKept,
    onOutput: (stream, chunk) => {
      kept[stream].add(chunk);
      if (stream === "stdout" && request.isOutputClosed?.() === true)
        closed.abort(new Error("nobody reads the output"));
      return lines?.onOutput(stream, chunk);
    },
  };
  const execute = async (): Promise<number> => {
    using either = eitherSignal([signal, closed.signal]);
    try {
      return (await (await connect(node)).run(command, either.signal)).status;
    } catch (error) {
      if (error === closed.signal.reason) return brokenPipeStatus;
      throw error;
    } finally {
      lines?.end();
    }
  };
  const open = async () => ({
    connection: await connect(node),
    node: nodeReference(node),
    settings: script.settings,
  });
  try {
    const status = await execute();
    await fetchFiles(
      status,
      fetchesOf(node, request),
      { open, progress: runtime.progress, fails: request.fails },
      signal,
    );
    return { node, status, ...texts(), error: undefined };
  } catch (error) {
    return { ...(await failed(cluster, { node, error }, signal)), ...texts() };
  }
}

/** Throws anything that isn't a failure of this node. */
async function failed(
  { directory }: ClusterRecord,
  { node, error: thrown }: { readonly node: NodeRecord; readonly error: unknown },
  signal: AbortSignal,
): Promise<NodeOutcome> {
  signal.throwIfAborted();
  const error = await withAdvice(thrown, directory);
  if (!(error instanceof ClusterError)) throw error;
  return { node, status: sshFailed, stdout: "", stderr: "", error };
}

const fetchesOf = (node: NodeRecord, { fetches, keepsPaths }: NodesRun): readonly FetchRequest[] =>
  keepsPaths === true
    ? fetches
    : fetches.map(({ remote, local }) => ({ remote, local: inFolder(local, nodeReference(node)) }));

/**
 * Returns the path of the same name in a folder beside it: `results/report.xml` becomes
 * `results/master_0/report.xml`.
 */
export const inFolder = (path: string, folder: string): string =>
  join(dirname(path), folder, basename(path));

/** Passes on the complete lines of a command's output. */
export function linesOf(
  onLine: (stream: "stdout" | "stderr", line: string) => void | Promise<void>,
): { readonly onOutput: NonNullable<RemoteCommand["onOutput"]>; readonly end: () => void } {
  const waits: Promise<void>[] = [];
  const splitter = (stream: "stdout" | "stderr") =>
    lineSplitter((line) => {
      const wait = onLine(stream, line);
      if (wait !== undefined) waits.push(wait);
    });
  const splitters = { stdout: splitter("stdout"), stderr: splitter("stderr") };
  return {
    onOutput: (stream, chunk) => {
      splitters[stream].add(chunk);
      const slow = waits.splice(0);
      return slow.length === 0 ? undefined : Promise.all(slow).then(() => {});
    },
    end: () => {
      splitters.stdout.end();
      splitters.stderr.end();
    },
  };
}
