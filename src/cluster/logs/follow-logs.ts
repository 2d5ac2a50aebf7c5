import { ClusterError, hasErrorId } from "../../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { outsideReason } from "../../system/printable.ts";
import { type Runtime, type Work, passedMs } from "../../system/runtime.ts";
import { eitherSignal } from "../../system/time-limit.ts";
import { waits } from "../../system/waits.ts";
import { openMaskedConnections, secretsWarning } from "../connections.ts";
import { assertRuns, findNodes, warnOfGoneNodes } from "../find-cluster.ts";
import { linesOf } from "../run-on-nodes.ts";
import followFile from "./follow-journal.sh" with { type: "text" };

interface FollowRequest {
  readonly cluster: ClusterRecord;
  /** See `findNodes`. */
  readonly nodes: readonly string[];
  /** Begins with the lines of the last milliseconds; undefined: with the last few lines. */
  readonly agoMs: number | undefined;
  /** Receives each line; it may hold secrets and terminal codes. A promise makes that node wait. */
  readonly onLine: (node: NodeRecord, line: string) => void | Promise<void>;
  /** Whether nobody reads the lines any more. Then the work ends. */
  readonly isOutputClosed: () => boolean;
}

const firstLines = 10;
const mostLines = 100_000;
/** Enough for the reason why a node's journal can't be read. */
const keptCharacters = 4096;

/**
 * Passes on what the nodes write into their journals, until it is aborted. A node whose connection is lost, such as one
 * that restarts, goes on where it was. Throws `node-not-found`, `node-stopped`, and the first
 * failure of a node that was never reached.
 */
export async function followLogs(
  work: Work,
  { cluster, nodes: selectors, agoMs, onLine, isOutputClosed }: FollowRequest,
): Promise<void> {
  const chosen = findNodes(cluster, selectors);
  warnOfGoneNodes(cluster, selectors, work);
  const nodes = chosen.filter(({ state }) => state === "running");
  const [first] = chosen;
  if (nodes.length === 0 && first !== undefined) assertRuns(cluster, first);
  for (const node of chosen)
    if (!nodes.includes(node))
      work.progress.warn(`${nodeReference(node)} is ${node.state}: it is left out`);
  await using connections = openMaskedConnections(cluster, work);
  const ending = new AbortController();
  const nobodyReads = new Error("nobody reads the output");
  using either = eitherSignal([work.signal, ending.signal]);
  let hasWarned = false;
  const pass = (node: NodeRecord, line: string): void | Promise<void> => {
    const problem = connections.problem();
    if (problem !== undefined && !hasWarned)
      work.progress.warn(secretsWarning("these lines", problem));
    hasWarned ||= problem !== undefined;
    if (isOutputClosed()) ending.abort(nobodyReads);
    else return onLine(node, line);
  };
  const follow = async (node: NodeRecord): Promise<void> => {
    try {
      await followNode({ node, agoMs, connections, pass, runtime: work }, either.signal);
    } catch (error) {
      // The others would go on for ever, and nobody would learn why this one's lines are missing.
      ending.abort(error);
      throw error;
    }
  };
  try {
    await mapConcurrently(nodes, nodes.length, follow, either.signal);
  } catch (error) {
    if (error !== nobodyReads) throw error;
  }
}

interface Followed {
  readonly node: NodeRecord;
  readonly agoMs: number | undefined;
  readonly connections: ConnectionPool;
  readonly pass: (node: NodeRecord, line: string) => void | Promise<void>;
  readonly runtime: Runtime;
}

async function followNode(
  { node, agoMs, connections, pass, runtime }: Followed,
  signal: AbortSignal,
): Promise<void> {
  const { clock, progress } = runtime;
  const name = nodeReference(node);
  const beganMs = passedMs(clock);
  const place = journalPlace();
  let hasRead = false;
  let lineOfLoss = "";
  for (let failures = 0; ; failures += 1) {
    const isKnown = place.repeated();
    const lines = linesOf((stream, line) => {
      if (stream === "stderr") return place.note(line);
      if (isKnown(line)) return undefined;
      hasRead = true;
      failures = 0;
      place.passed(line);
      return pass(node, line);
    });
    try {
      const connection = await connections.connect(node, signal);
      if (lineOfLoss !== "") progress.note(`${name} is reached again.`);
      lineOfLoss = "";
      const sinceMs = agoMs === undefined ? undefined : agoMs + passedMs(clock) - beganMs;
      const script = shellText(followFile, {
        LINES: agoMs === undefined ? firstLines : mostLines,
        AGO: sinceMs === undefined ? "" : Math.ceil(sinceMs / 1000),
        CURSOR: place.cursor(agoMs !== undefined),
      });
      const { status, stderr } = await connection.run(
        {
          argv: ["sh", "-c", script, "e2e-follow"],
          sudo: true,
          stdin: untilAborted(signal),
          isOutputHidden: true,
          keptCharacters,
          onOutput: lines.onOutput,
        },
        signal,
      );
      // A signal ends it with a higher status, as when the node stops.
      if (!hasRead && status > 0 && status <= 127) throw unreadable(name, stderr);
    } catch (error) {
      signal.throwIfAborted();
      const isLost = hasErrorId(error, "connection-failed");
      if (!isLost || (!hasRead && !error.transient)) throw error;
    } finally {
      lines.end();
    }
    if (lineOfLoss === "") {
      lineOfLoss = `The connection to ${name} is lost: its journal goes on when it is back.`;
      progress.note(lineOfLoss);
    }
    await clock.sleep(waits.followedNode.pauseMs(failures + 1), signal);
  }
}

const cursorLine = /^cursor ([A-Za-z0-9=;]{1,500})$/;

/**
 * Where a node's journal goes on after a lost connection. Times don't say, since a clock may be
 * set. Lines before the last cursor may have been on their way, so it is the last but one, and the
 * lines since the one before that, which may have been passed on already, are known by their words.
 */
function journalPlace() {
  const cursors: string[] = [];
  const passed = [new Map<string, number>()];
  return {
    note: (line: string): void => {
      const [, cursor] = cursorLine.exec(line) ?? [];
      if (cursor === undefined) return;
      if (cursors.push(cursor) > 2) cursors.shift();
      passed.push(new Map());
      if (passed.length > 3) passed.shift();
    },
    passed: (line: string): void => {
      const last = passed.at(-1);
      if (last !== undefined && last.size < mostLines) last.set(line, (last.get(line) ?? 0) + 1);
    },
    /** Empty: the journal is read as at the beginning. The first cursor says nothing of the past that was asked for. */
    cursor: (hasPast: boolean): string => cursors.at(-2) ?? (hasPast ? "" : (cursors[0] ?? "")),
    /** Returns what tells whether a line has been passed on before, each time once. */
    repeated: (): ((line: string) => boolean) => {
      const left = new Map<string, number>();
      for (const [line, count] of passed.flatMap((each) => [...each]))
        left.set(line, (left.get(line) ?? 0) + count);
      return (line) => {
        const count = left.get(line) ?? 0;
        if (count > 0) left.set(line, count - 1);
        return count > 0;
      };
    },
  };
}

/** The node's command ends when its stdin does, or its connection. */
const untilAborted = (signal: AbortSignal): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => {
      const ended = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => ended.resolve(), { once: true });
      if (!signal.aborted) await ended.promise;
      return { done: true, value: undefined };
    },
  }),
});

const unreadable = (node: string, stderr: string): ClusterError =>
  new ClusterError(
    "remote-command-failed",
    `The journal of ${node} cannot be read: ${outsideReason(stderr.replaceAll(/^cursor .*$/gm, "")) || "it has no journalctl"}.`,
    { facts: { node } },
  );
