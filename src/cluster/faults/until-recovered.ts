import type { Backend } from "../../backend/contract.ts";
import { hasErrorId, messageOf, revised } from "../../errors.ts";
import { commandName, runCommand } from "../../references.ts";
import type { Runtime } from "../../system/runtime.ts";
import { waitForCluster } from "../wait-for-cluster.ts";

/** A cluster elects leaders and copies data after a fault. */
const usualLimitMs = 10 * 60_000;

interface Recovery {
  readonly clusterId: string;
  readonly limitMs?: number | undefined;
}

/** Resolves when every node's check passes. Throws `deadline-passed` after the limit, and as waiting for a cluster does. */
export async function untilRecovered(
  backend: Backend<unknown>,
  { clusterId, limitMs = usualLimitMs }: Recovery,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = runtime.clock.now() + limitMs;
  const wait = { clusterId, login: undefined, skipHttpChecks: true, deadlineMs };
  try {
    await waitForCluster(backend, wait, runtime, signal);
  } catch (error) {
    if (signal.aborted || !hasErrorId(error, "deadline-passed")) throw error;
    throw revised(error, {
      message: `The fault has ended, but the cluster did not recover in time. ${messageOf(error)}`,
      hint: `${runCommand("wait")} to see whether it recovers later, and ${commandName("report")} to see what happened.`,
    });
  } finally {
    runtime.progress.waiting("");
  }
}
