import type { Backend } from "../../backend/contract.ts";
import { hasErrorId, messageOf, revised } from "../../errors.ts";
import { commandName, runCommand } from "../../references.ts";
import { type Work, passedMs } from "../../system/runtime.ts";
import { waitForCluster } from "../wait-for-cluster.ts";

/** A cluster elects leaders and copies data after a fault. */
const usualLimitMs = 10 * 60_000;

/**
 * Resolves when every node's check passes. Throws `deadline-passed` after the limit, and as waiting
 * for a cluster does.
 */
export async function untilRecovered(
  work: Work,
  backend: Backend<unknown>,
  {
    clusterId,
    limitMs = usualLimitMs,
  }: { readonly clusterId: string; readonly limitMs?: number | undefined },
): Promise<void> {
  const deadlineMs = passedMs(work.clock) + limitMs;
  const wait = { clusterId, login: undefined, skipHttpChecks: true, deadlineMs };
  try {
    await waitForCluster(work, backend, wait);
  } catch (error) {
    if (work.signal.aborted || !hasErrorId(error, "deadline-passed")) throw error;
    throw revised(error, {
      message: `The fault has ended, but the cluster did not recover in time. ${messageOf(error)}`,
      hint: `${runCommand("wait")} to see whether it recovers later, and ${commandName("report")} to see what happened.`,
    });
  } finally {
    work.progress.waiting("");
  }
}
