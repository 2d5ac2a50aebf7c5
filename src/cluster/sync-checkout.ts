import { numbered } from "../system/amounts.ts";
import { noRunningMaster } from "./find-cluster.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import { type SyncReport, syncCheckoutToNode } from "../platform/checkout/checkout-sync.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";
import { layouts } from "../platform/layouts/find-layout.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { createFileSums } from "../system/files/listed-file.ts";
import type { Work } from "../system/runtime.ts";

/** What a node got. Of a checkout, only masters get anything. */
export interface MasterSync extends SyncReport {
  /** Such as `master_0`. */
  readonly node: string;
}

interface SyncWork extends Pick<Work, "progress" | "signal"> {
  readonly connections: ConnectionPool;
  /**
   * Compares the contents of all files. Otherwise a file with the same size and time as a master's
   * counts as unchanged.
   */
  readonly checksum?: boolean;
}

/**
 * Syncs a checkout to all masters concurrently, or the folder of a platform to all nodes, all or
 * nothing for each. After a failure, the other nodes finish; then it throws the error of the first
 * node that failed. For errors, see platform/checkout/checkout-sync.ts.
 */
export async function syncCheckout(
  { connections, progress, checksum = false, signal }: SyncWork,
  cluster: ClusterRecord,
  checkout: Checkout,
): Promise<readonly MasterSync[]> {
  // The check of a platform runs on each node, that of a release doesn't come from the checkout.
  const isForAll = checkout.platform !== undefined;
  const nodes = cluster.nodes.filter(
    ({ role, state }) => (isForAll || role === "master") && state === "running",
  );
  if (nodes.length === 0) throw noRunningMaster(cluster, " to sync to");
  const sumOf = createFileSums();
  const sync = async (node: NodeRecord): Promise<MasterSync> => {
    const reference = nodeReference(node);
    using step = progress.start("Sync", reference);
    const connection = await connections.connect(node, signal);
    const report = await syncCheckoutToNode(
      checkout,
      { connection, reference, layouts, variant: cluster.variant, checksum, sumOf },
      signal,
    );
    step.done(`${report.sentFiles} of ${numbered(report.files, "file")} sent`);
    return { node: reference, ...report };
  };
  return await mapConcurrently(nodes, syncsAtOnce, sync, signal);
}

const syncsAtOnce = 32;
