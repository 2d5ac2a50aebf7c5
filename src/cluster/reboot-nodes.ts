import { ClusterError, hasErrorId, messageOf } from "../errors.ts";
import { runCommand } from "../references.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import { listedNodes } from "../platform/faults/fault-nodes.ts";
import type { Connection } from "../ssh/connection/connection.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { outsideReason } from "../system/printable.ts";
import { retry } from "../system/retry.ts";
import type { Work } from "../system/runtime.ts";
import { ruleOf, waits } from "../system/waits.ts";
import { assertKeyIsHere, openConnections } from "./connections.ts";
import { assertRuns } from "./find-cluster.ts";

const nodesAtOnce = 32;
const answerLimitMs = 15_000;

/**
 * Reboots nodes from within, for backends that can't start a stopped machine. Resolves when the
 * nodes have restarted and accept logins.
 */
export async function rebootNodes(
  work: Work,
  cluster: ClusterRecord,
  nodes: readonly NodeRecord[],
): Promise<void> {
  for (const node of nodes) assertRuns(cluster, node);
  await assertKeyIsHere(cluster);
  await using pool = openConnections(cluster.directory, work);
  using step = work.progress.start("Restart", nodes.map(nodeReference).join(", "));
  const { clock, progress, signal } = work;
  const left = new Set(nodes);
  const showLeft = (): void =>
    progress.waiting(left.size === 0 ? "" : `${listedNodes([...left])} to restart`);
  const reboot = async (node: NodeRecord): Promise<void> => {
    const bootNow = async (): Promise<string> =>
      bootOf(await pool.connect(node, work.signal), node, work.signal);
    const before = await bootNow();
    await begin(await pool.connect(node, work.signal), node, work.signal);
    const last = { message: "" };
    const look = async (): Promise<void> => {
      const now = await bootNow().catch((error: unknown) => {
        last.message = messageOf(error);
        const isSilent =
          hasErrorId(error, "connection-failed") || hasErrorId(error, "deadline-passed");
        throw isSilent ? notYet(node, messageOf(error), error) : error;
      });
      if (now === before) throw notYet(node, "it has not restarted yet");
    };
    const rule = { ...ruleOf(waits.continuedLogin, clock), seen: () => last.message };
    showLeft();
    await retry(look, rule, signal);
    left.delete(node);
    showLeft();
  };
  await mapConcurrently(nodes, nodesAtOnce, reboot, work.signal);
  step.done();
}

/**
 * Returns a text that differs from boot to boot. A container has its computer's boot id, so the
 * start time of process 1 is added.
 */
async function bootOf(
  connection: Connection,
  node: NodeRecord,
  signal: AbortSignal,
): Promise<string> {
  const script = "cat /proc/sys/kernel/random/boot_id && cut -d ' ' -f 22 /proc/1/stat";
  const { status, stdout } = await connection.run(
    { argv: ["sh", "-c", script], limitMs: answerLimitMs },
    signal,
  );
  if (status === 0) return stdout;
  throw new ClusterError(
    "remote-command-failed",
    `${nodeReference(node)} does not say when it has booted.`,
  );
}

async function begin(connection: Connection, node: NodeRecord, signal: AbortSignal): Promise<void> {
  const command = {
    argv: ["systemctl", "--no-block", "reboot"],
    sudo: true,
    limitMs: answerLimitMs,
  };
  try {
    const { status, stderr } = await connection.run(command, signal);
    if (status === 0) return;
    const reason = outsideReason(stderr) || `systemctl exited with ${status}`;
    throw new ClusterError(
      "remote-command-failed",
      `${nodeReference(node)} cannot restart: ${reason}.`,
    );
  } catch (error) {
    // The restart may be faster than its answer.
    if (!hasErrorId(error, "connection-failed")) throw error;
  }
}

const notYet = (node: NodeRecord, why: string, cause?: unknown): ClusterError =>
  new ClusterError("connection-failed", `${nodeReference(node)} is not back: ${why}`, {
    hint: `Give it more time, then ${runCommand("wait", "run")}. If it stays away, ${runCommand("logs", "run")} to see its console.`,
    transient: true,
    facts: { node: nodeReference(node) },
    cause,
  });
