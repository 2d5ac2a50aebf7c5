import { messageOf } from "../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  isReachable,
  nodeReference,
} from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { correctClock } from "../ssh/correct-clock.ts";
import { creationFiles } from "../store/creation-folder.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { readOwnText } from "../system/files/read-text.ts";
import { readBootId } from "../system/processes/process-identity.ts";
import type { Runtime } from "../system/runtime.ts";
import { withinLimit } from "../system/time-limit.ts";

/**
 * How often Linux has suspended this computer since its boot. Other systems have no such file.
 * https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-power
 */
const suspensionsPath = "/sys/power/suspend_stats/success";
const nodesAtOnce = 20;
const limitMs = 60_000;

interface Sleeper extends Pick<Runtime, "clock" | "progress"> {
  /** Default: the kernel's. */
  readonly suspensionsPath?: string;
}

/**
 * If this computer has slept since the last time, sets the clocks of all nodes that run: virtual
 * machines stood still meanwhile. All of them at once, because nodes whose clocks differ are worse
 * than nodes whose clocks are late together. Rejects only if aborted.
 */
export async function correctSleptClocks(
  cluster: ClusterRecord,
  connections: Pick<ConnectionPool, "connect">,
  runtime: Sleeper,
  signal: AbortSignal,
): Promise<void> {
  if (cluster.backend !== "vm") return;
  const { suspensions } = creationFiles(cluster.directory);
  const present = await suspensionsNow(runtime.suspensionsPath);
  if (present === undefined || (await readOwnText(suspensions).catch(() => "")) === present) return;
  using step = runtime.progress.start("Set the nodes' clocks", "this computer may have slept");
  const correct = async (node: NodeRecord, inner: AbortSignal): Promise<void> => {
    try {
      await correctClock(
        { ...runtime, signal: inner },
        await connections.connect(node, inner),
        nodeReference(node),
      );
    } catch (error) {
      signal.throwIfAborted();
      runtime.progress.warn(
        `The clock of ${nodeReference(node)} may be late, because this computer has slept: ${messageOf(error)}`,
      );
    }
  };
  const nodes = cluster.nodes.filter(isReachable);
  const correctAll = async (inner: AbortSignal): Promise<void> =>
    void (await mapConcurrently(nodes, nodesAtOnce, async (node) => correct(node, inner), signal));
  await withinLimit(limitMs, correctAll, () => {}, signal);
  // Each sleep is a matter of one try, or a node that is broken would hold up every command. A
  // folder that is read-only costs a look each time.
  await writePrivateFile(suspensions, present).catch(() => {});
  step.done();
}

/** Machines that don't run yet have missed no sleep. */
export async function noteSuspensions(directory: string): Promise<void> {
  const present = await suspensionsNow();
  if (present !== undefined)
    await writePrivateFile(creationFiles(directory).suspensions, present).catch(() => {});
}

/** Undefined if this computer has not slept since its boot, or doesn't count. */
async function suspensionsNow(path = suspensionsPath): Promise<string | undefined> {
  const count = (await readOwnText(path).catch(() => "0")).trim();
  return count === "0" ? undefined : `${await readBootId()} ${count}`;
}
