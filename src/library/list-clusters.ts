import type { ClusterRecord } from "../model/cluster-record.ts";
import { plainLine } from "../system/printable.ts";
import { inLibraryWords } from "./call-options.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { type ClusterBackend, assertBackend } from "./open-cluster.ts";

/** A cluster in the result of `Cluster.list`; `Cluster.find` opens it. */
export type ListedCluster = Pick<
  ClusterRecord,
  "id" | "state" | "variant" | "distribution" | "createdAt" | "expiresAt"
>;

export async function listForLibrary<Options>(
  clusters: ClusterBackend<Options>,
  signal: AbortSignal,
): Promise<readonly ListedCluster[]> {
  assertBackend(clusters);
  return await inLibraryWords(async () => {
    const backend = await clusters.open(signal);
    const found = await backend.list(signal);
    return found.map(({ id, state, variant, distribution, createdAt, expiresAt }) => ({
      id,
      state,
      variant,
      distribution,
      createdAt,
      expiresAt,
    }));
  });
}

/** `Cluster nightly { master_0: 172.17.0.2, agent_0: 172.17.0.3 }` */
export function printedCluster(
  id: string,
  nodes: readonly Pick<ClusterNode, "reference" | "publicAddress" | "privateAddress">[],
): string {
  const texts = nodes.map(
    ({ reference, publicAddress, privateAddress }) =>
      `${reference}: ${publicAddress ?? privateAddress ?? "no address"}`,
  );
  return plainLine(`Cluster ${id} { ${texts.join(", ")} }`, 10_000);
}
