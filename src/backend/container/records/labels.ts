import { isMapping } from "../../../system/is-mapping.ts";

/** The names of our labels, in one place. Everything that a command must know of a cluster is read back from them. */
export const labelNames = {
  clusterId: "cluster-e2e.cluster-id",
  creationId: "cluster-e2e.creation-id",
  /** Of containers only, as the index. */
  role: "cluster-e2e.role",
  /** The node's index within its role. */
  index: "cluster-e2e.index",
  /** How many nodes of each role were asked for, such as `master=1 agent=2 public_agent=1`. */
  counts: "cluster-e2e.counts",
  variant: "cluster-e2e.variant",
  distribution: "cluster-e2e.distribution",
  /** `direct` or `published`. */
  reach: "cluster-e2e.reach",
  createdBy: "cluster-e2e.created-by",
} as const;

export type LabelValues = Readonly<Partial<Record<keyof typeof labelNames, string>>>;

/** As words for the engine's command line. */
export function labelWords(values: LabelValues): readonly string[] {
  return Object.entries(values).map(([key, value]) => `--label=${labelNames[key as keyof LabelValues]}=${value}`);
}

/** Our own labels by the names that they have here, as images or anybody else may have made them up; those without a text are left out. */
export function readLabels(labels: unknown): LabelValues {
  if (!isMapping(labels)) return {};
  const found = Object.entries(labelNames).map(([key, name]) => [key, labels[name]] as const);
  return Object.fromEntries(found.filter(([, value]) => typeof value === "string" && value !== "")) as LabelValues;
}
