import type { NodeRecord } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";
import { watchdog } from "../../system/watchdog.ts";
import { judgeNode } from "./judge-node.ts";
import type { NodeVerdict } from "./judge-node.ts";
import { parseNodeReport } from "./node-report.ts";
import type { NodeReport } from "./node-report.ts";
import { nodeScript } from "./node-script.ts";

export interface NodeAnswer {
  readonly node: NodeRecord;
  readonly verdict: NodeVerdict;
  /** Undefined if the node could not be queried. */
  readonly report: NodeReport | undefined;
  /** Whether the answer had less than the usual time, because the deadline is near. */
  readonly isCutShort?: boolean;
}

/** How long a node may take to answer. */
export const askLimitMs = 60_000;

/** Queries a node's progress. A node that can't be reached now is waited for; a changed host key or a missing key is an error. */
export async function askNode(
  node: NodeRecord,
  connections: ConnectionPool,
  limitMs: number,
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
  try {
    const connection = await connections.connect(node, limit.signal);
    const result = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-readiness"],
        sudo: true,
        stdin: nodeScript,
        limitMs,
        task: "asking how far it is",
      },
      limit.signal,
    );
    if (result.status !== 0)
      return unanswered(`asking it failed: ${result.stderr.trim().split("\n").at(-1)?.slice(-200)}`);
    const report = parseNodeReport(result.stdout);
    return { node, verdict: judgeNode(report), report };
  } catch (error) {
    signal.throwIfAborted();
    const isCutShort = limitMs < askLimitMs;
    if (limit.hasBitten()) return { ...unanswered("it does not answer"), isCutShort };
    if (error instanceof ClusterError && error.id === "deadline-passed")
      return { ...unanswered(`it does not answer: ${error.message}`), isCutShort };
    if (error instanceof ClusterError && error.transient) return unanswered(`it does not answer: ${error.message}`);
    throw error;
  }
}
