import { messageOf } from "../../errors.ts";
import { type ClusterRecord, isReachable, nodeReference } from "../../model/cluster-record.ts";
import { readNodeVersion } from "../../platform/upgrade/node-version.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Work } from "../../system/runtime.ts";
import { watchdog } from "../../system/time-limit.ts";
import { assertKeyIsHere, openMaskedConnections } from "../connections.ts";

const nodesAtOnce = 32;
const limitMs = 60_000;

/**
 * Returns the platform's version on each node, by reference. Warns of nodes that don't answer,
 * which have none here. Throws `key-missing`.
 */
export async function readVersions(
  work: Work,
  cluster: ClusterRecord,
): Promise<ReadonlyMap<string, string>> {
  await assertKeyIsHere(cluster);
  await using connections = openMaskedConnections(cluster, work);
  using limit = watchdog(limitMs, work.signal);
  const nodes = cluster.nodes.filter(isReachable);
  const found = await mapConcurrently(
    nodes,
    nodesAtOnce,
    async (node): Promise<readonly (readonly [string, string])[]> => {
      try {
        const { version } = await readNodeVersion(node, connections, limit.signal);
        return version === "" ? [] : [[nodeReference(node), version]];
      } catch (error) {
        work.signal.throwIfAborted();
        const reason = limit.hasExpired() ? "it does not answer" : messageOf(error);
        work.progress.warn(`The version of ${nodeReference(node)} is not known: ${reason}`);
        return [];
      }
    },
    work.signal,
  );
  return new Map(found.flat());
}
