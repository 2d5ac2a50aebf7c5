import type { Engine } from "../engine/engine.ts";
import { networkName } from "../records/names.ts";
import type { CreationName } from "../records/names.ts";
import { type LabelValues, labelArguments } from "../records/labels.ts";

/**
 * Creates a bridge for the cluster; the engine picks its addresses. Throws `capacity-lacking` if the engine has none
 * left. The name contains the creation's id, because Docker 20 can create two networks of the same name at the same
 * moment, and then starts no container in either.
 */
export async function createNetwork(
  engine: Engine,
  { clusterId, creationId, labels }: CreationName & { readonly labels: LabelValues },
): Promise<void> {
  const words = [
    "network",
    "create",
    "--driver=bridge",
    ...labelArguments(labels),
    networkName({ clusterId, creationId }),
  ];
  await engine.change({ words });
}
