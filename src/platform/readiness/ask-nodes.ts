import type { NodeRecord } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { Clock } from "../../system/runtime.ts";
import { mapConcurrently } from "../../system/map-concurrently.ts";
import { ClusterError, messageOf } from "../../errors.ts";
import { watchdog } from "../../system/time-limit.ts";
import { judgeNode, type NodeVerdict } from "./judge-node.ts";
import { type NodeReport, parseNodeReport } from "./node-report.ts";
import { nodeScript } from "./node-script.ts";
import { outsideReason } from "../../system/printable.ts";

export interface NodesRequest {
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  /** Deadline as clock time. */
  readonly deadlineMs: number;
  /** How often to look at a node that passes its check, and the pause between two looks. */
  readonly looks: number;
  readonly lookPauseMs: number;
}

const nodesAtOnce = 32;
const othersPatienceMs = 1000;

/** Queries all nodes concurrently. Once one has failed, it stops waiting for nodes that don't answer within a moment. */
export async function askNodes(
  nodes: readonly NodeRecord[],
  request: NodesRequest,
  signal: AbortSignal,
): Promise<readonly NodeAnswer[]> {
  const { clock, deadlineMs } = request;
  const limitMs = Math.max(1000, Math.min(askLimitMs, deadlineMs - clock.now()));
  const answers: NodeAnswer[] = [];
  const failed = Promise.withResolvers<void>();
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  const ask = async (node: NodeRecord): Promise<void> => {
    const answer = await askNode(node, { ...request, limitMs }, either);
    answers.push(answer);
    if (answer.verdict.kind === "failed") failed.resolve();
  };
  const all = mapConcurrently(nodes, nodesAtOnce, ask, either);
  const cut = failed.promise.then(async () => clock.sleep(othersPatienceMs, either));
  cut.catch(() => {});
  all.catch(() => {});
  try {
    await Promise.race([all, cut]);
  } finally {
    enough.abort();
  }
  const order = new Map(nodes.map((node, index) => [node.id, index]));
  return answers.toSorted((first, second) => (order.get(first.node.id) ?? 0) - (order.get(second.node.id) ?? 0));
}

export interface NodeAnswer {
  readonly node: NodeRecord;
  readonly verdict: NodeVerdict;
  /** Undefined if the node could not be queried. */
  readonly report: NodeReport | undefined;
  /** Milliseconds until the question was sent, after the login and after the cluster's secrets were read; undefined without an answer. */
  readonly askedAfterMs?: number;
  /** Whether the answer had less than the usual time, because the deadline is near. */
  readonly isCutShort?: boolean;
}

type NodeQuestion = Pick<NodesRequest, "connections" | "clock" | "looks" | "lookPauseMs"> & {
  readonly limitMs: number;
};

/** How long a node may take to answer. */
const askLimitMs = 60_000;

/** Queries a node's progress. A node that can't be reached now is waited for; a changed host key or a missing key is an error. */
export async function askNode(
  node: NodeRecord,
  { connections, clock, limitMs, looks, lookPauseMs }: NodeQuestion,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  const unanswered = (reason: string): NodeAnswer => ({
    node,
    verdict: { kind: "waiting", reason },
    report: undefined,
  });
  if (node.state === "starting") return unanswered("the machine is starting");
  if (node.ssh.host === "") return unanswered("the machine has no address");
  using limit = watchdog(limitMs, signal);
  const startedAtMs = clock.now();
  let askedAfterMs = 0;
  async function* question(): AsyncGenerator<Uint8Array> {
    askedAfterMs = clock.now() - startedAtMs;
    yield Buffer.from(nodeScript);
  }
  try {
    const connection = await connections.connect(node, limit.signal);
    const result = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-readiness", String(looks), String(lookPauseMs / 1000)],
        sudo: true,
        stdin: question(),
        limitMs,
        task: "checking its readiness",
      },
      limit.signal,
    );
    if (result.status !== 0) return unanswered(`the check failed: ${outsideReason(result.stderr)}`);
    const report = parseNodeReport(result.stdout);
    return { node, verdict: judgeNode(report), report, askedAfterMs };
  } catch (error) {
    signal.throwIfAborted();
    const isCutShort = limitMs < askLimitMs;
    if (limit.hasExpired()) return { ...unanswered("it does not answer"), isCutShort };
    if (error instanceof ClusterError && error.id === "deadline-passed")
      return { ...unanswered(`it does not answer: ${messageOf(error)}`), isCutShort };
    if (error instanceof ClusterError && error.transient) return unanswered(`it does not answer: ${messageOf(error)}`);
    throw error;
  }
}
