import { nodeReference } from "../../model/cluster-record.ts";
import { mapConcurrently, withTasks } from "../../system/concurrency.ts";
import { type Progress, passedMs } from "../../system/runtime.ts";
import { slowNote } from "../../system/time-limit.ts";
import { isMarked } from "../../outside-text.ts";
import { type NodeAnswer, askNode, quotesNode } from "./ask-node.ts";
import {
  type Questions,
  type WaitState,
  answersOf,
  createWaitState,
  followAll,
  mastersCheck,
} from "./follow-nodes.ts";
import { type MachineWatchRequest, createMachineWatch } from "./machine-watch.ts";
import { type Wait, createMastersChecker } from "./masters-checker.ts";
import { assertNotFailed, deadlinePassed } from "./not-ready.ts";
import { createWaitReporter, waitsText } from "./report-waits.ts";

export interface ReadinessRequest extends MachineWatchRequest, Questions {
  /** Resolves when the cluster's secrets are masked, also those that the platform has created meanwhile. */
  readonly untilMasked?: () => Promise<void>;
  readonly progress: Progress;
  /** Called with every node after each change. */
  readonly onAnswers?: (answers: readonly Pick<NodeAnswer, "node" | "verdict">[]) => void;
}

export interface ReadinessReport {
  readonly layout: string;
  readonly nodeCount: number;
  /** Milliseconds from the call until all checks had passed three times. */
  readonly elapsedMs: number;
}

/** How many nodes are asked at the same time once all have passed. */
const nodesAtOnce = 32;
/** Even with a deadline that is over, nodes have this time to answer. */
const leastMs = 1000;

/**
 * Waits until the whole platform has passed all checks three times in a row: at the first question,
 * or else twice when each node is ready, and once more when all are. Throws `install-failed`,
 * `machine-failed` or `login-refused` as soon as it can no longer become ready, and as
 * `deadline-passed` with what each node still lacks.
 */
export async function waitUntilReady(
  request: ReadinessRequest,
  signal: AbortSignal,
): Promise<ReadinessReport> {
  const { clock, deadlineMs } = request;
  const startedAtMs = passedMs(clock);
  const limitMs = Math.max(leastMs, deadlineMs - startedAtMs);
  const state = createWaitState(request.cluster);
  using _slow = slowNote(() => showUnanswered(state, request));
  await withTasks({ signal }, async (tasks) => {
    tasks.start(async (inner) => {
      await clock.sleep(limitMs, inner.signal);
      throw notReady(state, passedMs(clock) - startedAtMs);
    });
    tasks.start(async (inner) => watchMachines(state, request, inner.signal));
    await passThrice(state, request, tasks.work.signal);
  });
  const answers = answersOf(state);
  return {
    layout: answers.find((answer) => answer.report !== undefined)?.report?.layout ?? "",
    nodeCount: answers.length,
    elapsedMs: passedMs(clock) - startedAtMs,
  };
}

async function passThrice(
  state: WaitState,
  request: ReadinessRequest,
  signal: AbortSignal,
): Promise<void> {
  const { connections, clock } = request;
  const checkMasters = createMastersChecker(clock);
  const checkOf = () => mastersCheck(state, request);
  const allPass = createJudge(state, request);
  const askAgain = async (): Promise<void> => {
    const ask = async (node: NodeAnswer["node"]): Promise<void> =>
      void state.answers.set(node.id, await askNode(node, { connections, looks: 1 }, signal));
    await mapConcurrently(state.cluster.nodes, nodesAtOnce, ask, signal);
    const check = checkOf();
    state.ofMasters = check && (await checkMasters(check, signal));
  };
  do {
    await followAll({ state, connections, clock, checkOf, checkMasters }, allPass, signal);
    if (!state.hasWaited) return;
    await askAgain();
  } while (!(await allPass(signal)));
}

/** The pause between two looks at the backend's record, which is refreshed much less often. */
const recordPauseMs = 1000;

/** Throws `machine-failed` if a machine has ended or is ending. */
async function watchMachines(
  state: WaitState,
  request: ReadinessRequest,
  signal: AbortSignal,
): Promise<never> {
  const watch = createMachineWatch(request);
  for (;;) {
    const isNodeSilent = answersOf(state).some(({ report }) => report === undefined);
    const record = await watch.current(isNodeSilent, signal);
    if (record !== state.cluster) {
      state.cluster = record;
      state.change();
    }
    await request.clock.sleep(recordPauseMs, signal);
  }
}

/** The time for the other answers after the first failure. */
const othersLimitMs = 1000;

/** Returns a function that reports what is known and whether everything has passed. It throws `install-failed`. */
function createJudge(
  state: WaitState,
  request: ReadinessRequest,
): (signal: AbortSignal) => Promise<boolean> {
  const report = createWaitReporter(request.progress);
  return async (signal) => {
    if (answersOf(state).some(hasFailed)) {
      if (answersOf(state).length < state.cluster.nodes.length || answersOf(state).some(isWaiting))
        await request.clock.sleep(othersLimitMs, signal);
      await request.untilMasked?.();
      request.onAnswers?.(answersOf(state));
      assertNotFailed(answersOf(state));
    }
    // Our own texts need no masks.
    const isMarkedWait = ({ reason }: Wait): boolean => isMarked(reason);
    if (answersOf(state).some(quotesNode) || state.ofMasters?.some(isMarkedWait) === true)
      await request.untilMasked?.();
    const answers = answersOf(state);
    if (answers.length < state.cluster.nodes.length) return false;
    request.onAnswers?.(answers);
    if (state.ofMasters === undefined && mastersCheck(state, request) !== undefined) return false;
    const waits = waitsOf(state, answers);
    report(waits, answers);
    return waits.length === 0;
  };
}

const hasFailed = ({ verdict }: NodeAnswer): boolean => verdict.kind === "failed";
const isWaiting = ({ verdict }: NodeAnswer): boolean => verdict.kind === "waiting";

const waitsOf = (state: WaitState, answers: readonly NodeAnswer[]): readonly Wait[] => [
  ...answers.flatMap(({ node, verdict }) =>
    verdict.kind === "waiting" ? [{ subject: nodeReference(node), reason: verdict.reason }] : [],
  ),
  ...(state.ofMasters ?? []),
];

/**
 * Until all nodes, and then the masters' web servers, have answered for the first time, which slow
 * checks may delay for minutes, shows which ones have not. Nothing that a node has said: the secrets may not be masked yet.
 */
function showUnanswered(state: WaitState, request: ReadinessRequest): void {
  const { cluster, answers, firstAnswers } = state;
  const masters = state.ofMasters === undefined ? mastersCheck(state, request)?.masters : undefined;
  const ofNodes = cluster.nodes.flatMap((node): readonly Wait[] => {
    if (answers.has(node.id)) return [];
    const first = firstAnswers.get(node.id);
    const isShown = first?.verdict.kind === "waiting" && !quotesNode(first);
    const reason = isShown ? first.verdict.reason : "it has not answered yet";
    return [{ subject: nodeReference(node), reason }];
  });
  const ofMasters = (masters ?? []).map((node) => ({
    subject: nodeReference(node),
    reason: "its web server has not answered yet",
  }));
  const waits = ofNodes.length > 0 ? ofNodes : ofMasters;
  if (waits.length > 0) request.progress.waiting(waitsText(waits, cluster.nodes.length));
}

const silence = { kind: "waiting", reason: "it does not answer" } as const;

/** Says what the latest answer of each node was. */
function notReady(state: WaitState, elapsedMs: number): Error {
  const { cluster, answers, firstAnswers } = state;
  const latest = cluster.nodes.map(
    (node): NodeAnswer =>
      answers.get(node.id) ??
      firstAnswers.get(node.id) ?? { node, verdict: silence, report: undefined },
  );
  return deadlinePassed(waitsOf(state, latest), latest, elapsedMs);
}
