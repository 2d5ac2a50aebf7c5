import type { ClusterRecord } from "../model/cluster-record.ts";
import type { Surroundings } from "./backend.ts";
import { type Raising, raiseNodes } from "./raise-nodes.ts";

/**
 * Starts machines, and meets the first ones while later ones are still being started. When one of the two fails the other one is aborted, and
 * awaited all the same: a roll-back must not begin while something is still being made.
 */
export async function launchAndRaise(
  launch: (signal: AbortSignal) => Promise<void>,
  raising: Raising,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const failing = new AbortController();
  const either = AbortSignal.any([signal, failing.signal]);
  const fail = (error: unknown): void => failing.abort(error);
  const launched = launch(either);
  launched.catch(fail);
  const raised = raiseNodes(raising, surroundings, either);
  raised.catch(fail);
  await Promise.allSettled([launched, raised]);
  await launched;
  return await raised;
}
