import type { Engine } from "./engine.ts";
import { type LabelValues, labelWords } from "./labels.ts";

export const networkName = (clusterId: string): string => `cluster-e2e-${clusterId}`;

/** A bridge of the cluster's own; the engine picks its addresses. Throws `capacity-lacking` where it has none left. Returns its id. */
export async function createNetwork(
  engine: Engine,
  { clusterId, labels }: { readonly clusterId: string; readonly labels: LabelValues },
): Promise<string> {
  const words = ["network", "create", "--driver=bridge", ...labelWords(labels), networkName(clusterId)];
  return engine.change({ words });
}
