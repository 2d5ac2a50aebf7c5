import { ClusterError, messageOf } from "../../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { outsideReason } from "../../system/printable.ts";
import type { Clock } from "../../system/runtime.ts";
import { watchdog } from "../../system/time-limit.ts";
import {
  type NodeReport,
  type NodeVerdict,
  isAnswer,
  judgeNode,
  nodeScript,
  parseNodeReport,
  usualCheckSeconds,
} from "./node-question.ts";

export interface NodesRequest {
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** How often to look at a node that passes its check, and the pause between two looks. */
  readonly looks: number;
  readonly lookPauseMs: number;
  /** How long a node that isn't ready may delay its answer, in case it becomes ready. */
  readonly gracePeriodMs?: number;
}

const nodesAtOnce = 32;
/** The time for the other answers after the first failure. */
const othersLimitMs = 1000;

/** Queries all nodes concurrently. Once one has failed, it stops waiting for nodes that don't answer within a moment. */
export async function askNodes(
  nodes: readonly NodeRecord[],
  request: NodesRequest,
  signal: AbortSignal,
): Promise<readonly NodeAnswer[]> {
  const { clock, deadlineMs } = request;
  const latestMs = Math.max(clock.now() + 1000, deadlineMs);
  const answers = new Map<string, NodeAnswer>();
  const failed = Promise.withResolvers<void>();
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  const ask = async (node: NodeRecord): Promise<void> => {
    const answer = await askNode(node, { ...request, deadlineMs: latestMs }, either);
    answers.set(node.id, answer);
    if (answer.verdict.kind === "failed") failed.resolve();
  };
  const all = mapConcurrently(nodes, nodesAtOnce, ask, either);
  const cut = failed.promise.then(async () => clock.sleep(othersLimitMs, either));
  cut.catch(() => {});
  all.catch(() => {});
  try {
    await Promise.race([all, cut]);
  } finally {
    enough.abort();
  }
  return nodes.flatMap(({ id }) => answers.get(id) ?? []);
}

export interface NodeAnswer {
  readonly node: NodeRecord;
  readonly verdict: NodeVerdict;
  /** Undefined if the node could not be queried. */
  readonly report: NodeReport | undefined;
  /** Milliseconds until the question was sent, login included; undefined without an answer. */
  readonly askedAfterMs?: number;
  /** Whether the answer had less than the usual time, because the deadline is near. */
  readonly isCutShort?: boolean;
}

type NodeQuestion = Pick<
  NodesRequest,
  "connections" | "clock" | "looks" | "lookPauseMs" | "gracePeriodMs"
> & {
  readonly deadlineMs?: number;
};

/** How long a node may take to answer, besides two runs of its check: a login, and the end of a check that hangs. */
const answerLimitMs = 20_000;

/**
 * Asks a node. An unreachable node counts as waiting; a changed host key or a missing key is an error. How long a check may take is only known on the
 * node. If that is longer than usual, it is asked once more, with more time.
 */
export async function askNode(
  node: NodeRecord,
  question: NodeQuestion,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  const first = await askWithin(usualCheckSeconds, node, question, signal);
  const { checkSeconds } = first.report ?? {};
  if (checkSeconds === undefined) return first;
  const next = await askWithin(checkSeconds, node, question, signal);
  return next.isCutShort === true ? { ...first, isCutShort: true } : next;
}

/** Asks what a node is, without running its check. */
export async function askLayout(
  node: NodeRecord,
  question: Pick<NodeQuestion, "connections" | "clock">,
  signal: AbortSignal,
): Promise<NodeReport | undefined> {
  const quick = { ...question, looks: 1, lookPauseMs: 0 };
  return (await askWithin(0, node, quick, signal)).report;
}

/** `checkSeconds`: the longest limit of a check that is waited for. */
async function askWithin(
  checkSeconds: number,
  node: NodeRecord,
  {
    connections,
    clock,
    deadlineMs = Infinity,
    looks,
    lookPauseMs,
    gracePeriodMs = 0,
  }: NodeQuestion,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  const unanswered = (reason: string): NodeAnswer => ({
    node,
    verdict: { kind: "waiting", reason },
    report: undefined,
  });
  if (node.state === "starting") return unanswered("the machine is starting");
  if (node.ssh.host === "") return unanswered("the machine has no address");
  const startedAtMs = clock.now();
  const wholeMs = answerLimitMs + 2000 * checkSeconds;
  const limitMs = Math.max(0, Math.min(wholeMs, deadlineMs - startedAtMs));
  const isCutShort = limitMs < wholeMs;
  using limit = watchdog(limitMs, signal);
  const values = [looks, lookPauseMs / 1000, gracePeriodMs / 10, checkSeconds];
  let askedAfterMs = 0;
  async function* question(): AsyncGenerator<Uint8Array> {
    askedAfterMs = clock.now() - startedAtMs;
    yield Buffer.from(nodeScript);
  }
  try {
    const connection = await connections.connect(node, limit.signal);
    const result = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-readiness", ...values.map(String)],
        sudo: true,
        stdin: question(),
        isStdinShort: true,
        limitMs,
        task: "checking its readiness",
      },
      limit.signal,
    );
    if (result.status !== 0) return unanswered(`the check failed: ${outsideReason(result.stderr)}`);
    if (!isAnswer(result.stdout)) return unanswered("the check failed: its answer is empty");
    const report = parseNodeReport(result.stdout);
    return { node, verdict: judgeNode(report), report, askedAfterMs };
  } catch (error) {
    signal.throwIfAborted();
    if (limit.hasExpired()) return { ...unanswered("it does not answer"), isCutShort };
    if (error instanceof ClusterError && error.id === "deadline-passed")
      return { ...unanswered(`it does not answer: ${messageOf(error)}`), isCutShort };
    if (error instanceof ClusterError && error.transient)
      return unanswered(`it does not answer: ${messageOf(error)}`);
    throw error;
  }
}

/** The backend's record of the cluster, refreshed from time to time. */
export interface MachineWatch {
  /**
   * Returns the latest record, or an older one while the backend has a transient failure or doesn't answer in time.
   * Throws `machine-failed` if a machine has ended or is ending.
   */
  current(mustBeFresh: boolean, signal: AbortSignal): Promise<ClusterRecord>;
}

export interface MachineWatchRequest {
  readonly cluster: ClusterRecord;
  readonly describe: (signal: AbortSignal) => Promise<ClusterRecord>;
  /** Clock time after which nothing is waited for. */
  readonly deadlineMs: number;
  readonly clock: Clock;
}

/** A backend that doesn't answer must not hold up the questions to the nodes. */
const describeLimitMs = 15_000;
const usualPauseMs = 15_000;
/** If a node doesn't answer, its end must be noticed soon. */
const shortPauseMs = 3000;

export function createMachineWatch({
  cluster,
  describe,
  deadlineMs,
  clock,
}: MachineWatchRequest): MachineWatch {
  const latest = { record: cluster, askedAtMs: clock.now() };
  const refresh = async (signal: AbortSignal): Promise<ClusterRecord> => {
    using limit = watchdog(Math.min(describeLimitMs, deadlineMs - clock.now()), signal);
    try {
      return await describe(limit.signal);
    } catch (error) {
      if (limit.hasExpired() || (error instanceof ClusterError && error.transient))
        return latest.record;
      throw error;
    }
  };
  return {
    current: async (mustBeFresh, signal) => {
      const age = clock.now() - latest.askedAtMs;
      if (age >= (mustBeFresh ? shortPauseMs : usualPauseMs)) {
        latest.record = await refresh(signal);
        latest.askedAtMs = clock.now();
      }
      assertAlive(cluster, latest.record);
      return latest.record;
    },
  };
}

const hint = "This cluster cannot become ready. Create a new one.";

function assertAlive(before: ClusterRecord, now: ClusterRecord): void {
  const present = new Map(now.nodes.map((node) => [node.id, node]));
  const known = [
    ...new Map([...before.nodes, ...now.nodes].map((node) => [node.id, node])).values(),
  ];
  const gone = known.filter((node) => isGone(present.get(node.id)));
  if (gone.length > 0) throw machinesFailed(gone.map((node) => present.get(node.id) ?? node));
  if (now.state !== "incomplete") return;
  throw new ClusterError(
    "machine-failed",
    `Machines of cluster "${now.id}" are missing: only ${now.nodes.length} exist.`,
    {
      hint,
    },
  );
}

const isGone = (node: NodeRecord | undefined): boolean => node === undefined || !isUp(node);
const isUp = ({ state }: NodeRecord): boolean => state === "starting" || state === "running";
const canContinue = ({ state }: NodeRecord): boolean => state === "stopped" || state === "paused";

function machinesFailed(gone: readonly NodeRecord[]): ClusterError {
  const texts = gone.map((node) => {
    const state = canContinue(node) ? node.state : "gone";
    const why = node.stateReason ? `: ${outside(node.stateReason)}` : "";
    return `${nodeReference(node)} (${node.id}) is ${state}${why}`;
  });
  return new ClusterError("machine-failed", `Not all machines run: ${texts.join("; ")}.`, {
    hint: gone.every(canContinue) ? "Run the start command, then wait again." : hint,
    facts: {
      nodes: gone.map((node) => ({
        node: nodeReference(node),
        id: node.id,
        reason: outside(node.stateReason ?? "") || undefined,
      })),
    },
  });
}
