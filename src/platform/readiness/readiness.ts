import { numbered } from "../../system/amounts.ts";
import { type ClusterRecord, nodeReference } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { poll } from "../../system/retry.ts";
import type { Progress } from "../../system/runtime.ts";
import {
  type NodeAnswer,
  type NodesRequest,
  askNodes,
  createMachineWatch,
  type MachineWatchRequest,
} from "./ask-nodes.ts";
import {
  type MastersCheck,
  type Superuser,
  type Wait,
  createMastersChecker,
} from "./masters-checker.ts";
import { hasTls, reportedLayout } from "./node-question.ts";
import { assertNotFailed, deadlinePassed } from "./not-ready.ts";

export interface ReadinessRequest extends MachineWatchRequest {
  readonly connections: ConnectionPool;
  /** The superuser; undefined if no login should be tried, as on an open source cluster. */
  readonly login: Superuser | undefined;
  /** Skips all requests that this machine sends to the masters' web servers. */
  readonly skipHttpChecks: boolean;
  readonly progress: Progress;
  /** Called with every node after each round of questions. */
  readonly onAnswers?: (answers: readonly Pick<NodeAnswer, "node" | "verdict">[]) => void;
}

export interface ReadinessReport {
  readonly layout: string;
  readonly nodeCount: number;
  /** Milliseconds from the call until all checks had passed three times. */
  readonly elapsedMs: number;
}

const passesNeeded = 3;
/** The period from one question to the next grows with the cluster, to keep this machine from being busy. */
const shortestPeriodMs = 1000;
const longestPeriodMs = 5000;
const periodPerNodeMs = 30;
/** The pause after slow answers is this many times as long, because questions must not slow down the installation. */
const pausePerSlowAnswer = 2;
/** In larger clusters, nodes wait for each other's answers, so each question looks only once. */
const mostNodesForMoreLooks = 32;
/** The pause between two looks once everything has passed. Only a few looks are left then. */
const lookPauseMs = 150;
/** A node that becomes ready within this time answers at once, instead of at the next question. */
const gracePeriodMs = 900;

/**
 * Waits until the whole platform has passed all checks three times in a row. Throws `install-failed`, `machine-failed` or `login-refused` as soon
 * as it can no longer become ready, and as `deadline-passed` with what each node still lacks.
 */
export async function waitUntilReady(
  request: ReadinessRequest,
  signal: AbortSignal,
): Promise<ReadinessReport> {
  const { clock, deadlineMs } = request;
  const startedAtMs = clock.now();
  const askAll = createRound(request);
  const isSmall = request.cluster.nodes.length <= mostNodesForMoreLooks;
  let latest: Round = { answers: [], waits: [] };
  let passes = 0;
  let askedAtMs = startedAtMs;
  const look = async (inner: AbortSignal): Promise<ReadinessReport | undefined> => {
    askedAtMs = clock.now();
    const looks = isSmall ? Math.min(2, passesNeeded - passes) : 1;
    // After the first pass, a node that isn't ready for a moment must not look as if it were.
    latest = await askAll(
      { looks, lookPauseMs, gracePeriodMs: isSmall && passes === 0 ? gracePeriodMs : 0 },
      inner,
    );
    // A period begins when the question is sent. The first question waits for the login.
    askedAtMs += Math.max(0, ...latest.answers.map(({ askedAfterMs }) => askedAfterMs ?? 0));
    passes = latest.waits.length === 0 ? passes + looks : 0;
    return passes >= passesNeeded ? reportOf(latest.answers, clock.now() - startedAtMs) : undefined;
  };
  const pauseMs = (): number => {
    const answersTookMs = clock.now() - askedAtMs;
    if (passes > 0) return lookPauseMs;
    const waitingMs = Math.min(longestPeriodMs, periodPerNodeMs * request.cluster.nodes.length);
    const isSlow = answersTookMs > shortestPeriodMs + (isSmall ? gracePeriodMs : 0);
    const restMs = isSlow ? Math.min(longestPeriodMs, pausePerSlowAnswer * answersTookMs) : 0;
    return Math.max(shortestPeriodMs - answersTookMs, waitingMs - answersTookMs, restMs);
  };
  const report = await poll(look, { clock, deadlineMs, pauseMs }, signal);
  if (report === undefined)
    throw deadlinePassed(latest.waits, latest.answers, clock.now() - startedAtMs);
  return report;
}

type Looking = Required<Pick<NodesRequest, "looks" | "lookPauseMs" | "gracePeriodMs">>;

interface Round {
  readonly answers: readonly NodeAnswer[];
  readonly waits: readonly Wait[];
}

/** Returns a function that asks all nodes once, looks several times at those that are ready, and reports the waits. */
function createRound(
  request: ReadinessRequest,
): (looking: Looking, signal: AbortSignal) => Promise<Round> {
  const watch = createMachineWatch(request);
  const checkMasters = createMastersChecker(request.clock);
  const report = createWaitReporter(request.progress);
  const earlier = new Map<string, NodeAnswer>();
  let known: readonly Wait[] = [];
  let isNodeSilent = false;
  return async (looking, signal) => {
    const lookAtMasters = async (
      look: () => Promise<readonly Wait[]>,
    ): Promise<readonly Wait[]> => {
      const first = await look();
      if (first.length > 0 || looking.looks === 1) return first;
      await request.clock.sleep(lookPauseMs, signal);
      return look();
    };
    const cluster = await watch.current(isNodeSilent, signal);
    const given = await askNodes(cluster.nodes, { ...request, ...looking }, signal);
    const answers = given.map((answer) => lastKnown(answer, earlier));
    request.onAnswers?.(answers);
    assertNotFailed(answers);
    isNodeSilent = answers.some((answer) => answer.report === undefined);
    // A round that the deadline cut short knows less than the round before.
    if (known.length > 0 && given.some(({ isCutShort }) => isCutShort === true))
      return { answers, waits: known };
    const check = mastersCheck(cluster, answers, request);
    const ofMasters =
      check === undefined ? [] : await lookAtMasters(async () => checkMasters(check, signal));
    const waits = [...nodeWaits(answers), ...ofMasters];
    report(waits, answers);
    known = waits;
    return { answers, waits };
  };
}

/** Near the deadline a slow answer is cut short; the node's previous answer then says more than its silence. */
function lastKnown(answer: NodeAnswer, earlier: Map<string, NodeAnswer>): NodeAnswer {
  const before = earlier.get(answer.node.id);
  if (answer.isCutShort !== true || before === undefined) {
    earlier.set(answer.node.id, answer);
    return answer;
  }
  const reason = "it passed its last check, but time ran out before the next one";
  return before.verdict.kind === "ready"
    ? { ...answer, verdict: { kind: "waiting", reason } }
    : before;
}

const nodeWaits = (answers: readonly NodeAnswer[]): readonly Wait[] =>
  answers.flatMap(({ node, verdict }) =>
    verdict.kind === "waiting" ? [{ subject: nodeReference(node), reason: verdict.reason }] : [],
  );

/**
 * Returns the questions for the masters; undefined while they are not asked. They are asked as soon as they are ready, so that a wrong password shows
 * before the last agent is up.
 */
function mastersCheck(
  cluster: ClusterRecord,
  answers: readonly NodeAnswer[],
  request: ReadinessRequest,
): MastersCheck | undefined {
  const masters = answers.filter((answer) => answer.node.role === "master");
  const report = masters[0]?.report;
  const layout = report && reportedLayout(report);
  const areReady = masters.every((answer) => answer.verdict.kind === "ready");
  if (request.skipHttpChecks || !areReady || report === undefined || layout?.web === undefined)
    return undefined;
  // The library can create a cluster before its platform is known. Then nothing leads to a port of the platform's own.
  if (layout.web.endpoint !== undefined && cluster.webUi === undefined) return undefined;
  return {
    variant: cluster.variant,
    layout,
    isTlsEnabled: hasTls(layout, report) ?? false,
    masters: masters.map((answer) => answer.node),
    agentCount: answers.length - masters.length,
    login: request.login,
    connections: request.connections,
  };
}

const reportOf = (answers: readonly NodeAnswer[], elapsedMs: number): ReadinessReport => ({
  layout: answers.find((answer) => answer.report !== undefined)?.report?.layout ?? "",
  nodeCount: answers.length,
  elapsedMs,
});

const mostSubjects = 3;
/** In larger clusters, one line stands for all nodes that wait for the same thing. */
const mostNodesOneByOne = 8;
const mostReasons = 8;

/** Reports what is being waited for, once per change: a summary in one line, and each node's own change as a detail. */
function createWaitReporter(
  progress: Progress,
): (waits: readonly Wait[], answers: readonly NodeAnswer[]) => void {
  const reported = new Map<string, string>();
  return (waits, answers) => {
    const reasons = new Map(waits.map(({ subject, reason }) => [subject, reason]));
    for (const { node } of answers) {
      const subject = nodeReference(node);
      const reason = reasons.get(subject) ?? "ready";
      if (reported.get(subject) === reason) continue;
      reported.set(subject, reason);
      progress.detail(1, `${subject}: ${reason}`);
    }
    const text =
      waits.length === 0 ? "all checks passed; confirming" : waitsText(waits, answers.length);
    if (reported.get("") === text) return;
    reported.set("", text);
    progress.waiting(text);
  };
}

/** A line for each node, such as `agent_0: the installer is running`, or for each reason: `all 40 nodes: …`. */
export function waitsText(waits: readonly Wait[], nodeCount: number): string {
  const [first] = waits;
  if (first !== undefined && waits.length === 1) return `${first.subject}: ${first.reason}`;
  const groups =
    waits.length <= mostNodesOneByOne
      ? waits.map((wait) => [wait])
      : [...Map.groupBy(waits, ({ reason }) => reason).values()];
  const lines = groups.map((group) => `${subjectsText(group, nodeCount)}: ${group[0]?.reason}`);
  const rest = lines.length - mostReasons;
  const more = rest > 0 ? [`and ${numbered(rest, "other reason")}`] : [];
  const shown = [...lines.slice(0, mostReasons), ...more].map((line) => `  ${line}`);
  return [
    `waiting for ${numbered(new Set(waits.map(({ subject }) => subject)).size, "node")}:`,
    ...shown,
  ].join("\n");
}

function subjectsText(group: readonly Wait[], nodeCount: number): string {
  if (group.length === nodeCount && nodeCount > 1) return `all ${nodeCount} nodes`;
  const rest = group.length - mostSubjects;
  const named = group.slice(0, mostSubjects).map((wait) => wait.subject);
  return named.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
