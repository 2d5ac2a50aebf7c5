import { hasErrorId, messageOf, assertExpected } from "../../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { matchesLine } from "../../model/line-pattern.ts";
import type { Noticeable } from "../../platform/faults/fault-kind.ts";
import { readEvents } from "../../store/events.ts";
import { once } from "../../system/concurrency.ts";
import { outsideLine } from "../../system/printable.ts";
import { type Runtime, type Work, endedBy, passedMs } from "../../system/runtime.ts";
import { orAborted, withinLimit } from "../../system/time-limit.ts";
import { waits } from "../../system/waits.ts";
import { openMaskedConnections, secretsWarning } from "../connections.ts";
import { recordEvent } from "../events/record-event.ts";
import { explanationOf, windowsOf } from "../report/notice.ts";
import { type Finding, type WatchedNode, watchNode } from "./watch-node.ts";

/** Which findings don't count: all of a kind, or those whose line matches. */
export interface Ignored {
  readonly kind: Noticeable | "all";
  readonly pattern: string | undefined;
}

/** Something that went wrong while a command ran, which nothing of ours explains and nobody ignores. */
export interface Trouble {
  readonly node: string;
  readonly kind: Noticeable;
  readonly what: string;
  /** Outside text. */
  readonly text: string;
  /** ISO, by this computer's clock. */
  readonly at: string;
}

interface WatchRequest {
  readonly cluster: ClusterRecord;
  readonly ignored: readonly Ignored[];
  /** Finds the cluster again, because a node that was restarted may have another address. */
  readonly find: (signal: AbortSignal) => Promise<ClusterRecord>;
  /** Called at once. */
  readonly onTrouble: (trouble: Trouble) => void;
}

/** How long the command waits until all nodes are watched. */
const beginLimitMs = 15_000;
/** How long the nodes have for their last words. */
const endLimitMs = 5_000;
/** A backend's answer that takes longer isn't awaited: the next one may come. */
const lookLimitMs = 10_000;
/** Nodes say something every three seconds. */
const silentMs = 4_000;
const mostTroubles = 100;
/** Nodes may print thousands of lines a second that a fault explains. */
const eventsKeptMs = 1_000;

/**
 * Watches all nodes that run, until it is disposed of: their journals, clocks, boots, and the
 * platform's own program. Resolves when that has begun on every node; a node that can't be watched
 * only causes a warning, and is tried again.
 */
export async function startWatch(work: Work, request: WatchRequest) {
  const { progress } = work;
  const { cluster } = request;
  const disposal = new AbortController();
  const inner = endedBy(work, disposal);
  const connections = openMaskedConnections(cluster, work);
  const judge = findingJudge(request, work);
  const ended = Promise.withResolvers<void>();
  const mark = `cluster-e2e-mark-${crypto.randomUUID()}`;
  const nodes = cluster.nodes.filter(({ state }) => state === "running");
  const shared = { connections, mark, ended: ended.promise, onFinding: judge.add };
  const watched = nodes.map((node) => watchedNode(inner, node, shared));
  const look = nodesLooker(work, request, watched, judge.add);
  const begun = untilAll(
    watched.map((each) => each.begun),
    beginLimitMs,
    work.signal,
  );
  const looking = begun.then(async () => lookAgain(inner, watched, look));
  looking.catch(() => {});
  const warn = (what: "isOn" | "isMarked", text: (problem: string) => string): void => {
    for (const { status } of watched.filter(({ status: each }) => !each[what] && !isOff(each)))
      progress.warn(`${nodeReference(status.node)} ${text(status.problem)}`);
  };
  const dispose = once(async () => {
    disposal.abort(new Error("The command has ended."));
    await Promise.allSettled([looking, ...watched.map(({ watching }) => watching)]);
    await connections[Symbol.asyncDispose]();
  });
  const watch = {
    /** Waits for what the nodes still have to say, and returns all troubles. */
    end: once(async () => {
      ended.resolve();
      const present = watched.filter(({ status }) => status.isOn);
      await untilAll(
        present.map((each) => each.marked),
        endLimitMs,
        work.signal,
      );
      if (watched.some(({ status }) => !status.isMarked && !isOff(status)))
        await withinLimit(endLimitMs, look, () => {}, inner.signal);
      warn("isMarked", (problem) => `was not watched until the end: ${problem}`);
      const troubles = await judge.end();
      await dispose();
      return troubles;
    }),
    [Symbol.asyncDispose]: dispose,
  };
  try {
    await begun;
  } catch (error) {
    await dispose();
    throw error;
  }
  warn("isOn", (problem) => `is not watched yet: ${problem}`);
  const problem = connections.problem();
  if (problem !== undefined) progress.warn(secretsWarning("what is watched", problem));
  return { ...watch, knowsSecrets: problem === undefined };
}

interface Status {
  /** As the backend last said. */
  node: NodeRecord;
  isOn: boolean;
  /** Whether it has said everything, at the end. */
  isMarked: boolean;
  problem: string;
}

const isOff = ({ node }: Pick<Status, "node">): boolean =>
  ["stopped", "ending", "ended"].includes(node.state);

type Watched = ReturnType<typeof watchedNode>;

/**
 * Begins to watch a node. `begun` and `marked` resolve once it is watched and has said everything,
 * or can't be watched.
 */
function watchedNode(
  work: Work,
  node: NodeRecord,
  shared: Pick<WatchedNode, "connections" | "mark" | "ended" | "onFinding">,
) {
  const [begun, marked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const status: Status = {
    node,
    isOn: false,
    isMarked: false,
    problem: "it does not answer",
  };
  const own = {
    ...shared,
    state: { heardMs: passedMs(work.clock) },
    clock: work.clock,
    onMarked: () => {
      status.isMarked = true;
      marked.resolve();
    },
    onBegun: () => {
      Object.assign(status, { isOn: true, problem: "it does not answer" });
      begun.resolve();
    },
  };
  const watching = watchOn(work, own, status);
  const finish = (): void => [begun, marked].forEach(({ resolve }) => resolve());
  watching.then(finish, finish);
  return { state: own.state, status, begun: begun.promise, marked: marked.promise, watching };
}

/**
 * Returns what asks the backend where the nodes are now, and reports those that are off though
 * nobody has stopped them.
 */
function nodesLooker(
  { clock }: Work,
  { cluster: { directory }, find }: WatchRequest,
  watched: readonly Watched[],
  onFinding: WatchedNode["onFinding"],
): (signal: AbortSignal) => Promise<void> {
  return async (signal) => {
    const found = await find(signal).catch(() => undefined);
    const events = await readEvents(directory);
    for (const { status } of watched) {
      const [name, ms] = [nodeReference(status.node), clock.now()];
      // The machine may be another one, as after the restore of a container's snapshot.
      const node = found?.nodes.find((each) => nodeReference(each) === name);
      if (node === undefined) continue;
      const wasOff = isOff(status);
      status.node = node;
      if (wasOff || !isOff(status)) continue;
      const known = events.findLast((event) => event.kind === "node" && event.node === name);
      if (known?.kind === "node" && known.state === node.state) continue;
      const text = `the node is ${node.state}`;
      const what = "stop of the node";
      onFinding({ kind: "reboot", what, subject: text, node: name, text, seenMs: ms, atMs: ms });
    }
  };
}

/**
 * Looks while a node isn't watched or says nothing, because the connection to one that is off may
 * stay open: at once when that begins, and then again and again.
 */
async function lookAgain(
  { clock, signal }: Work,
  watched: readonly Watched[],
  look: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const next = { looks: 0, atMs: 0 };
  for (let known: ReadonlySet<Watched> = new Set(); ;) {
    await clock.sleep(waits.watchedNode.pauseMs(1), signal);
    const now = passedMs(clock);
    const silent = new Set(
      watched.filter(({ status, state }) => !status.isOn || now - state.heardMs > silentMs),
    );
    if (!silent.isSubsetOf(known)) Object.assign(next, { looks: 0, atMs: now });
    known = silent;
    if (silent.size === 0 || now < next.atMs) continue;
    await withinLimit(lookLimitMs, look, () => {}, signal);
    next.looks += 1;
    next.atMs = passedMs(clock) + waits.watchedNode.pauseMs(next.looks);
  }
}

/** Resolves when all have resolved, or after the limit. */
const untilAll = async (
  all: readonly Promise<void>[],
  limitMs: number,
  signal: AbortSignal,
): Promise<void> =>
  withinLimit(
    limitMs,
    async (limited) => void (await orAborted(Promise.all(all), limited)),
    () => {},
    signal,
  );

/** Watches a node again and again, because its connection is lost when it restarts. */
async function watchOn(
  { clock, progress, signal }: Work,
  own: Omit<WatchedNode, "node">,
  status: Status,
): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      await watchNode({ ...own, node: status.node }, signal);
    } catch (error) {
      assertExpected(error, signal);
      if (status.isOn) failures = 1;
      Object.assign(status, { isOn: false, problem: messageOf(error) });
      const name = nodeReference(status.node);
      progress.detail(1, `${name} is not watched for now: ${status.problem}`);
      const { transient } = error;
      if (!transient && !hasErrorId(error, "connection-failed")) throw error;
    }
    do await clock.sleep(waits.watchedNode.pauseMs(failures), signal);
    while (status.node.state !== "running");
  }
}

/** Decides which findings are troubles, in the order in which they come, and records each once. */
function findingJudge(
  { cluster: { directory }, ignored, onTrouble }: WatchRequest,
  runtime: Runtime,
) {
  const troubles: Trouble[] = [];
  const seen = new Set<string>();
  const counts = new Map<string, number>();
  const work = { last: Promise.resolve() };
  const explain = explainer(directory);
  const judge = async (finding: Finding): Promise<void> => {
    const { node, kind, what, subject, atMs } = finding;
    const nodeKind = `${node} ${kind}`;
    const key = `${nodeKind} ${subject}`;
    const count = (counts.get(nodeKind) ?? 0) + 1;
    counts.set(nodeKind, count);
    if (seen.has(key) || troubles.length >= mostTroubles) return;
    const isIgnored = ignored.some(
      ({ kind: each, pattern }) =>
        (each === "all" || each === kind) &&
        (pattern === undefined || matchesLine(pattern, finding.text)),
    );
    if (isIgnored && count > 1) return;
    const explanation =
      (await explain(finding)) ?? (isIgnored ? "a request to ignore it" : undefined);
    const text = outsideLine(finding.text);
    const isTrouble = explanation === undefined;
    if (isTrouble) seen.add(key);
    const event = {
      kind: "noticed",
      node,
      what,
      text,
      ...(explanation !== undefined && { isExplained: true, explanation }),
    } as const;
    const at = { now: () => atMs };
    if (isTrouble || count === 1)
      recordEvent(directory, event, { progress: runtime.progress, clock: at });
    if (!isTrouble) return;
    const trouble = { node, kind, what, text, at: new Date(atMs).toISOString() };
    troubles.push(trouble);
    onTrouble(trouble);
  };
  return {
    add: (finding: Finding): void => {
      work.last = work.last.then(async () => judge(finding)).catch(() => {});
    },
    end: async (): Promise<readonly Trouble[]> => {
      await work.last;
      return troubles;
    },
  };
}

/** Returns what finds the fault or power change that explains a finding. Events are read again unless the last ones do. */
function explainer(directory: string) {
  const known = { atMs: -Infinity, windows: windowsOf([], 0) };
  const find = ({ kind, node, seenMs, atMs }: Finding): string | undefined =>
    [seenMs, atMs].flatMap((ms) => explanationOf(kind, { node, ms }, known.windows) ?? [])[0];
  return async (finding: Finding): Promise<string | undefined> => {
    const { seenMs } = finding;
    const isFresh = Math.abs(seenMs - known.atMs) < eventsKeptMs;
    const explanation = isFresh ? find(finding) : undefined;
    if (explanation !== undefined) return explanation;
    Object.assign(known, { atMs: seenMs, windows: windowsOf(await readEvents(directory), seenMs) });
    return find(finding);
  };
}
