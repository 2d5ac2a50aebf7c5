import type { NodeRecord } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";
import type { Clock } from "../../system/clock.ts";
import { runAtOnce } from "../../system/run-at-once.ts";
import { askLimitMs, askNode } from "./ask-node.ts";
import type { NodeAnswer } from "./ask-node.ts";

export interface NodesRequest {
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  /** Deadline as clock time. */
  readonly deadlineMs: number;
}

const nodesAtOnce = 32;
const othersPatienceMs = 1000;

/** Queries all nodes concurrently. Once one has failed, it stops waiting for nodes that don't answer within a moment. */
export async function askNodes(
  nodes: readonly NodeRecord[],
  request: NodesRequest,
  signal: AbortSignal,
): Promise<readonly NodeAnswer[]> {
  const { clock, connections, deadlineMs } = request;
  const limitMs = Math.max(1000, Math.min(askLimitMs, deadlineMs - clock.now()));
  const answers: NodeAnswer[] = [];
  const failed = Promise.withResolvers<void>();
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  const ask = async (node: NodeRecord): Promise<void> => {
    const answer = await askNode(node, connections, limitMs, either);
    answers.push(answer);
    if (answer.verdict.kind === "failed") failed.resolve();
  };
  const all = runAtOnce(nodes, nodesAtOnce, ask, either);
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
