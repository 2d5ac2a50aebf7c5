import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { parsePlatformHead } from "../../platform/folder/platform-file.ts";
import { limitedLines } from "../../platform/limited.ts";
import { folderLayout, platformRoot } from "../../platform/layouts/folder.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { outsideReason } from "../../system/printable.ts";
import { type Clock, passedMs } from "../../system/runtime.ts";
import { ClusterError } from "../../errors.ts";
import { readLines } from "../logs/log-lines.ts";
import { linesOf } from "../run-on-nodes.ts";
import { type Patterns, type Verdict, journalExpression, judgeLine } from "./judge-line.ts";
import { type Tick, judgeTick, readTick, tickOfBoot } from "./judge-tick.ts";
import watchFile from "./watch-node.sh" with { type: "text" };

/** Something that went wrong on a node. */
export interface Finding extends Verdict {
  readonly node: string;
  /** Outside text. */
  readonly text: string;
  /** When this computer learned of it, and when the node says it was, both by this computer's clock. */
  readonly seenMs: number;
  readonly atMs: number;
}

export interface WatchedNode {
  /** What is known of the node. It stays when the connection is lost. */
  readonly state: NodeState;
  /** Where the node is now. */
  readonly node: NodeRecord;
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  readonly onBegun: () => void;
  readonly onFinding: (finding: Finding) => void;
  /** A word for the journal when the command has ended, and the promise that it has. */
  readonly mark: string;
  readonly ended: Promise<void>;
  /** Everything that the node had to say before the mark has been passed on. */
  readonly onMarked: () => void;
}

/** What is known of a node. It stays when the connection is lost. */
interface NodeState {
  /** When it last said something. */
  heardMs: number;
  boot?: string;
  /** From where the journal goes on: the last but one, because lines before the last may be on their way. */
  cursor?: string;
  nextCursor?: string;
  lastTick?: Tick | undefined;
  isProgramFailing?: boolean;
  /** By how many milliseconds the node's clock is ahead. */
  aheadMs?: number;
}

const notFound = 127;
const keptCharacters = 4096;
const programSeconds = 30;
const cursorShape = /^[A-Za-z0-9=;]{1,500}$/;
/** A smaller difference may be the time of the line's way. */
const leastAheadMs = 2000;

/**
 * Passes on what goes wrong on a node. Resolves when the node has said that it watches no more, and
 * throws the errors of the connection.
 */
export async function watchNode(watched: WatchedNode, signal: AbortSignal): Promise<void> {
  const { node, state, connections } = watched;
  const connection = await connections.connect(node, signal);
  const stopped = new AbortController();
  const facts = Promise.withResolvers<Patterns>();
  const reader = nodeReader(watched, facts.resolve);
  const lines = linesOf((stream, line) => {
    if (stream === "stdout") reader(line);
  });
  const { facts: factsFile } = folderLayout().factFiles ?? { facts: "" };
  const script =
    limitedLines +
    shellText(watchFile, {
      CURSOR: state.cursor ?? "",
      FACTS: factsFile,
      PLATFORM: platformRoot,
      WATCH_SECONDS: programSeconds,
    });
  const closing = AbortSignal.any([signal, stopped.signal]);
  try {
    const { status, stderr } = await connection.run(
      {
        argv: ["sh", "-c", script, "e2e-watch"],
        sudo: true,
        stdin: wordsFor(watched, facts.promise, closing),
        isOutputHidden: true,
        keptCharacters,
        onOutput: lines.onOutput,
      },
      signal,
    );
    const reason = outsideReason(stderr) || (status === notFound ? "it has no journalctl" : "");
    throw new ClusterError(
      "remote-command-failed",
      `${nodeReference(node)} cannot be watched: ${reason || `the command ended with ${status}`}.`,
      // A node that shuts down ends the command.
      { transient: status !== notFound },
    );
  } finally {
    stopped.abort(new Error("The node's command has ended."));
    lines.end();
  }
}

/** The node's stdin, which ends with the signal. */
async function* wordsFor(
  { mark, ended }: WatchedNode,
  patterns: Promise<Patterns>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  const aborted = Promise.withResolvers<undefined>();
  signal.addEventListener("abort", () => aborted.resolve(undefined), { once: true });
  if (signal.aborted) return;
  const found = await Promise.race([patterns, aborted.promise]);
  if (found === undefined) return;
  yield Buffer.from(`${journalExpression(found, mark)}\n`);
  await Promise.race([ended, aborted.promise]);
  if (signal.aborted) return;
  yield Buffer.from(`${mark}\n`);
  await aborted.promise;
}

function programFailure(text: string): string | undefined {
  const [, status = "0", output = ""] = /^(\d{1,3}) (.*)$/s.exec(text) ?? [];
  if (status === "0") return undefined;
  return `./watch exited with status ${status}${output === "" ? "" : `: ${output}`}`;
}

/** Returns what reads the lines of watch-node.sh. */
function nodeReader(
  watched: WatchedNode,
  onPatterns: (patterns: Patterns) => void,
): (line: string) => void {
  const { state, node: record, clock, mark, onFinding, onMarked } = watched;
  const node = nodeReference(record);
  const known: { patterns: Patterns } = { patterns: { errors: [], allowed: [] } };
  const report = (verdict: Verdict, text: string, atMs = clock.now()): void =>
    onFinding({ ...verdict, node, text, seenMs: clock.now(), atMs });
  const readJournal = (line: string): void => {
    if (line.includes(mark)) onMarked();
    const reading = { aheadMs: state.aheadMs ?? 0, nowMs: clock.now() };
    const [read] = readLines({ node, name: "journal.txt", text: line }, reading);
    const verdict = read && judgeLine(read, known.patterns);
    if (verdict !== undefined) report(verdict, `${read?.unit}: ${read?.text}`, read?.ms);
  };
  const restart = { kind: "reboot", what: "restart of the node" } as const;
  const readers: Readonly<Record<string, (text: string) => void>> = {
    boot: (text) => {
      if (state.boot !== undefined && state.boot !== text)
        report({ ...restart, subject: text }, "the node has booted");
      if (state.boot !== text) state.lastTick &&= tickOfBoot(state.lastTick);
      state.boot = text;
    },
    facts: (text) => {
      const facts = parsePlatformHead(text);
      if (facts.problems === undefined) known.patterns = facts.value.logs;
    },
    cursor: (text) => {
      onPatterns(known.patterns);
      if (!cursorShape.test(text)) return;
      state.cursor = state.nextCursor ?? text;
      state.nextCursor = text;
    },
    ready: () => watched.onBegun(),
    tick: (text) => {
      const tick = readTick(text);
      if (tick === undefined) return;
      const aheadMs = Math.round(tick.clock * 1000 - clock.now());
      state.aheadMs = Math.abs(aheadMs) < leastAheadMs ? 0 : aheadMs;
      for (const { text: says, ...verdict } of judgeTick(tick, state.lastTick))
        report(verdict, says);
      state.lastTick = tick;
    },
    watch: (text) => {
      const failure = programFailure(text);
      if (failure !== undefined && state.isProgramFailing !== true)
        report({ kind: "watch", what: "failed watch", subject: text }, failure);
      state.isProgramFailing = failure !== undefined;
    },
    mark: onMarked,
  };
  return (line) => {
    state.heardMs = passedMs(clock);
    if (/^[ \d]/.test(line)) return readJournal(line);
    const [word = ""] = line.slice(0, 10).split(" ", 1);
    if (Object.hasOwn(readers, word)) readers[word]?.(line.slice(word.length + 1));
  };
}
