import type { Surroundings } from "../system/surroundings.ts";
import { ClusterError } from "../errors.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";
import { syncCheckout as syncToNode } from "../platform/checkout/checkout-sync.ts";
import type { SyncReport } from "../platform/checkout/checkout-sync.ts";
import { layouts } from "../platform/layouts/find-layout.ts";
import type { ConnectionPool } from "../ssh/connection/pool.ts";
import { runAtOnce } from "../system/run-at-once.ts";
import { createFileSums } from "../system/files/file-hash.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { nodeReference } from "../model/cluster-record.ts";

export interface MasterSync extends SyncReport {
  /** Such as `master_0`. */
  readonly node: string;
}

const filesAtOnce = 8;

/**
 * Syncs a checkout to all masters concurrently, all or nothing for each. Fails as platform/checkout/checkout-sync.ts does, with the error of the
 * first master that failed, after the others have finished.
 */
export async function syncCheckout(
  cluster: ClusterRecord,
  checkout: Checkout,
  { connections, progress }: { readonly connections: ConnectionPool } & Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<readonly MasterSync[]> {
  const masters = cluster.nodes.filter((node) => node.role === "master" && node.state === "running");
  if (masters.length === 0) {
    throw new ClusterError("node-not-found", `Cluster "${cluster.id}" has no running master to sync to.`, {
      hint: "The inspect command shows its nodes.",
      facts: { cluster: cluster.id },
    });
  }
  const sumOf = createFileSums();
  // The checksums are computed while the nodes report what they have. A file that can't be read is reported where it is sent.
  const files = [...checkout.contents.values()].flatMap(({ tests, library }) => [...tests, ...library]);
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  const summing = runAtOnce(files, filesAtOnce, async ({ source }) => sumOf(source, either), either).catch(() => {});
  const sync = async (node: NodeRecord): Promise<MasterSync> => {
    const reference = nodeReference(node);
    using step = progress.start("Sync", reference);
    const connection = await connections.connect(node, signal);
    const report = await syncToNode(
      checkout,
      { connection, reference, layouts, variant: cluster.variant, sumOf },
      signal,
    );
    step.done(`${report.sentFiles} of ${report.files} files sent`);
    return { node: reference, ...report };
  };
  try {
    return await runAtOnce(masters, masters.length, sync, signal);
  } finally {
    ending.abort();
    await summing;
  }
}
