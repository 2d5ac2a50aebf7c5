import type { ClusterRecord } from "../cluster/record.ts";
import { nodeReference } from "../cluster/record.ts";
import { ClusterError } from "../errors.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import type { Clock } from "../system/clock.ts";
import { runAtOnce } from "../system/concurrency.ts";
import type { Progress } from "../system/progress.ts";
import { installPaths } from "./install-paths.ts";
import { layouts } from "./layouts/find-layout.ts";
import { askNode } from "./readiness/ask-node.ts";
import type { NodeAnswer } from "./readiness/ask-node.ts";
import { createMastersChecker } from "./readiness/check-masters.ts";
import type { Login, MastersChecker, Wait } from "./readiness/check-masters.ts";
import { createWaitTeller } from "./readiness/tell-waits.ts";
import { createMachineWatch } from "./readiness/watch-machines.ts";

export interface ReadinessRequest {
  /** Asks the backend anew. */
  readonly describe: (signal: AbortSignal) => Promise<ClusterRecord>;
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
  /** The superuser; undefined where no login is to be tried, as on an open source cluster. */
  readonly login: Login | undefined;
  /** Leaves out everything that this machine asks the masters' web servers. */
  readonly skipHttpChecks: boolean;
  /** Clock time. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly progress: Progress;
}

export interface ReadinessReport {
  readonly layout: string;
  readonly nodeCount: number;
  /** Milliseconds from the call until all had passed three times. */
  readonly elapsedMs: number;
}

const passesNeeded = 3;
const nodesAtOnce = 32;
const askLimitMs = 60_000;
const shortestPauseMs = 1000;
const longestPauseMs = 5000;

/**
 * Waits until all of the platform works, three times in a row. Fails as `install-failed`, `machine-failed` or `login-refused` as soon as it
 * can't become ready any more, and as `deadline-passed` with what every node still lacks.
 */
export async function waitUntilReady(request: ReadinessRequest, signal: AbortSignal): Promise<ReadinessReport> {
  const { clock, progress } = request;
  const startedAtMs = clock.now();
  const watch = createMachineWatch(request);
  const checker = createMastersChecker();
  const tell = createWaitTeller(progress);
  let isNodeSilent = false;
  let pauseMs = shortestPauseMs;
  for (let passes = 0; ;) {
    const cluster = await watch.current(isNodeSilent, signal);
    const answers = await askNodes(cluster, request, signal);
    assertNotFailed(answers);
    isNodeSilent = answers.some((answer) => answer.report === undefined);
    const waits = [...nodeWaits(answers), ...(await masterWaits(cluster, answers, { request, checker }, signal))];
    tell(waits, answers);
    passes = waits.length === 0 ? passes + 1 : 0;
    if (passes === passesNeeded) return reportOf(answers, clock.now() - startedAtMs);
    pauseMs = waits.length === 0 ? shortestPauseMs : Math.min(pauseMs * 1.3, longestPauseMs);
    if (clock.now() + pauseMs > request.deadlineMs) throw deadlinePassed(waits, answers, clock.now() - startedAtMs);
    await clock.sleep(pauseMs, signal);
  }
}

async function askNodes(cluster: ClusterRecord, request: ReadinessRequest, signal: AbortSignal): Promise<NodeAnswer[]> {
  const limitMs = Math.max(1000, Math.min(askLimitMs, request.deadlineMs - request.clock.now()));
  return runAtOnce(
    cluster.nodes,
    nodesAtOnce,
    async (node) => askNode(node, request.connections, limitMs, signal),
    signal,
  );
}

const nodeWaits = (answers: readonly NodeAnswer[]): readonly Wait[] =>
  answers.flatMap(({ node, verdict }) =>
    verdict.kind === "waiting" ? [{ subject: nodeReference(node), reason: verdict.reason }] : [],
  );

/** Asked as soon as the masters are ready by their own word, so that a wrong password is known before the last agent is. */
async function masterWaits(
  cluster: ClusterRecord,
  answers: readonly NodeAnswer[],
  { request, checker }: { readonly request: ReadinessRequest; readonly checker: MastersChecker },
  signal: AbortSignal,
): Promise<readonly Wait[]> {
  const masters = answers.filter((answer) => answer.node.role === "master");
  const report = masters[0]?.report;
  const layout = layouts.find(({ name }) => name === report?.layout);
  const areReady = masters.every((answer) => answer.verdict.kind === "ready");
  if (request.skipHttpChecks || !areReady || report === undefined || layout === undefined) return [];
  const check = {
    variant: cluster.variant,
    layout,
    isTlsEnabled: report.isTlsEnabled,
    masters: masters.map((answer) => answer.node),
    agentCount: answers.length - masters.length,
    login: request.login,
    connections: request.connections,
  };
  return checker.check(check, signal);
}

function assertNotFailed(answers: readonly NodeAnswer[]): void {
  const failures = answers.flatMap(({ node, verdict }) =>
    verdict.kind === "failed" ? [{ node: nodeReference(node), reason: verdict.reason, log: verdict.log }] : [],
  );
  const [first, ...others] = failures;
  if (first === undefined) return;
  const also = others.length === 0 ? "" : ` (and on ${others.map((failure) => failure.node).join(", ")})`;
  const tail = first.log.length === 0 ? [] : ["The last lines of its log:", ...first.log.map((line) => `  ${line}`)];
  throw new ClusterError(
    "install-failed",
    [`The installation failed on ${first.node}${also}: ${first.reason}.`, ...tail].join("\n"),
    { hint: `The whole log is ${installPaths.installLog} on that node.`, facts: { failures } },
  );
}

function deadlinePassed(waits: readonly Wait[], answers: readonly NodeAnswer[], elapsedMs: number): ClusterError {
  const shown = waits.slice(0, 40).map(({ subject, reason }) => `  ${subject}: ${reason}`);
  const rest = waits.length - shown.length;
  const lines = [...shown, ...(rest > 0 ? [`  and ${rest} more`] : [])];
  const head = `The cluster was not ready after ${Math.round(elapsedMs / 1000)} s; ${answers.length} nodes were asked.`;
  const text = waits.length === 0 ? ["It was about to be."] : ["Still waited for:", ...lines];
  return new ClusterError("deadline-passed", [head, ...text].join("\n"), {
    hint: "Wait again, or longer with --timeout.",
    facts: { waits, elapsedMs },
  });
}

const reportOf = (answers: readonly NodeAnswer[], elapsedMs: number): ReadinessReport => ({
  layout: answers.find((answer) => answer.report !== undefined)?.report?.layout ?? "",
  nodeCount: answers.length,
  elapsedMs,
});
