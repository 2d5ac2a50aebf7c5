import { assertReadable } from "../../assert-readable.ts";
import { isMapping } from "../../../system/is-mapping.ts";

/**
 * The names of our labels, in one place. Commands read everything that they need to know about a cluster from these
 * labels.
 */
export const labelNames = {
  clusterId: "cluster-e2e.cluster-id",
  creationId: "cluster-e2e.creation-id",
  /** Containers have `role` and `index`; networks don't. */
  role: "cluster-e2e.role",
  /** The node's index within its role. */
  index: "cluster-e2e.index",
  /** The requested number of nodes of each role, such as `master=1 agent=2 public_agent=1`. */
  counts: "cluster-e2e.counts",
  variant: "cluster-e2e.variant",
  distribution: "cluster-e2e.distribution",
  /** `direct` or `published`. */
  reach: "cluster-e2e.reach",
  createdBy: "cluster-e2e.created-by",
  /** The node's own options in JSON, so that a restored node gets the same ones. */
  settings: "cluster-e2e.settings",
  /** The rest is on the images and volumes of snapshots; restored containers inherit it from their image. */
  snapshot: "cluster-e2e.snapshot",
  /** The node's address in the cluster's network. */
  address: "cluster-e2e.address",
  /** Kilobytes in the node's volumes. */
  volumeSize: "cluster-e2e.volume-size",
} as const;

export type LabelValues = Readonly<Partial<Record<keyof typeof labelNames, string>>>;

/** Returns the labels as arguments for the engine's command line. Throws if no command could read the values back. */
export function labelArguments(values: LabelValues): readonly string[] {
  assertReadable(values);
  return Object.entries(values).map(([key, value]) => `--label=${labelNames[key as keyof LabelValues]}=${value}`);
}

/**
 * Returns our own labels, keyed by the names used here. Images or anyone else may have set them. Leaves out labels
 * whose value isn't text.
 */
export function readLabels(labels: unknown): LabelValues {
  if (!isMapping(labels)) return {};
  const found = Object.entries(labelNames).map(([key, name]) => [key, labels[name]] as const);
  return Object.fromEntries(found.filter(([, value]) => typeof value === "string" && value !== "")) as LabelValues;
}
