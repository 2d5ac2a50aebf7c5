import { mayPass, messageOf } from "../../errors.ts";
import type { NodeRecord } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { RemoteResult } from "../../ssh/connection/connection.ts";
import { isMarked } from "../../outside-text.ts";
import { outsideReason } from "../../system/printable.ts";
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

export interface NodeAnswer {
  readonly node: NodeRecord;
  readonly verdict: NodeVerdict;
  /** Undefined if the node could not be queried. */
  readonly report: NodeReport | undefined;
}

/** Whether the answer has words of the node that users will see. */
export const quotesNode = ({ verdict }: Pick<NodeAnswer, "verdict">): boolean =>
  verdict.kind === "failed" || (verdict.kind === "waiting" && isMarked(verdict.reason));

interface NodeQuestion {
  readonly connections: Pick<ConnectionPool, "connect">;
  /** How often to run a check that passes. */
  readonly looks: number;
  /**
   * The `seen` of an answer that is known already. The node answers once it has another, but at the
   * latest after a minute.
   */
  readonly known?: string | undefined;
  /** Called with an answer that the next one replaces, because the node needs more time for its check. */
  readonly onFirst?: (answer: NodeAnswer) => void;
}

/**
 * How long a node may take to answer, besides the runs of its check, two at least: a login, and the
 * end of a check that hangs.
 */
const answerLimitMs = 20_000;
/** How long a node waits until it has another answer. */
const waitSeconds = 60;

/**
 * Asks a node. An unreachable node counts as waiting; a changed host key or a missing key is an
 * error. How long a check may take is only known on the node. If that is longer than usual, it is
 * asked once more, with more time.
 */
export async function askNode(
  node: NodeRecord,
  question: NodeQuestion,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  const first = await askWithin(usualCheckSeconds, node, question, signal);
  const { checkSeconds } = first.report ?? {};
  if (checkSeconds === undefined) return first;
  question.onFirst?.(first);
  return await askWithin(checkSeconds, node, question, signal);
}

/** Asks what a node is, without running its check. */
export async function askLayout(
  node: NodeRecord,
  { connections }: Pick<NodeQuestion, "connections">,
  signal: AbortSignal,
): Promise<NodeReport | undefined> {
  return (await askWithin(0, node, { connections, looks: 1 }, signal)).report;
}

/** `checkSeconds`: the longest limit of a check that is waited for. */
async function askWithin(
  checkSeconds: number,
  node: NodeRecord,
  { connections, looks, known }: NodeQuestion,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  const unanswered = (reason: string): NodeAnswer => ({
    node,
    verdict: { kind: "waiting", reason },
    report: undefined,
  });
  const answerOf = ({ status, stdout, stderr }: RemoteResult): NodeAnswer => {
    if (status !== 0) return unanswered(`the check failed: ${outsideReason(stderr)}`);
    if (!isAnswer(stdout)) return unanswered("the check failed: its answer is empty");
    const report = parseNodeReport(stdout);
    return { node, verdict: judgeNode(report), report };
  };
  if (node.state === "starting") return unanswered("the machine is starting");
  if (node.ssh.host === "") return unanswered("the machine has no address");
  const seconds = known === undefined ? 0 : waitSeconds;
  const limitMs = answerLimitMs + 1000 * (Math.max(2, looks) * checkSeconds + seconds);
  using limit = watchdog(limitMs, signal);
  const values = [looks, known ?? "-", seconds, checkSeconds];
  try {
    const connection = await connections.connect(node, limit.signal);
    const result = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-readiness", ...values.map(String)],
        sudo: true,
        stdin: nodeScript,
        limitMs,
        task: "checking its readiness",
        // The platform may have created secrets since the node was asked, which are masked only later.
        isOutputHidden: true,
        isQuoted: (one) => quotesNode(answerOf(one)),
      },
      limit.signal,
    );
    return answerOf(result);
  } catch (error) {
    signal.throwIfAborted();
    if (limit.hasExpired()) return unanswered("it does not answer");
    if (mayPass(error)) return unanswered(`it does not answer: ${messageOf(error)}`);
    throw error;
  }
}
