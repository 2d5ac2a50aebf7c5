import type { Engine } from "../engine/engine.ts";
import { networkName } from "../records/names.ts";
import type { CreationName } from "../records/names.ts";
import { type LabelValues, labelWords } from "../records/labels.ts";

/**
 * A bridge of the cluster's own; the engine picks its addresses. Throws `capacity-lacking` where it has none left.  Its name is
 * this creation's alone: version 20 lets two networks made at the same moment have one name, and then starts no container in either.
 */
export async function createNetwork(
  engine: Engine,
  { clusterId, creationId, labels }: CreationName & { readonly labels: LabelValues },
): Promise<void> {
  const words = ["network", "create", "--driver=bridge", ...labelWords(labels), networkName({ clusterId, creationId })];
  await engine.change({ words });
}
