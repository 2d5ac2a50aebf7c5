import { nodeReference } from "../../../model/cluster-record.ts";
import * as read from "../../../model/reader.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import type { NodeName } from "../../contract.ts";
import { assertReadable } from "../../shared/foreign-resource.ts";
import { limitFields, limitsOf } from "../limits.ts";
import { type ContainerOptions, parseVolume } from "../options.ts";

/** The names of our labels. Commands read everything that they need to know about a cluster from these labels. */
export const labelNames = {
  clusterId: "cluster-e2e.cluster-id",
  creationId: "cluster-e2e.creation-id",
  /** Containers have `role` and `index`; networks don't. */
  role: "cluster-e2e.role",
  index: "cluster-e2e.index",
  /** The requested number of nodes of each role, such as `master=1 agent=2 public_agent=1`. */
  counts: "cluster-e2e.counts",
  variant: "cluster-e2e.variant",
  /** Such as `http`, `https:8443/ui` or `none`, if the creation knew it. */
  webUi: "cluster-e2e.web-ui",
  /** Such as `slurm 80,6817 24.05`, if the creation knew it and it has no variants. */
  platform: "cluster-e2e.platform",
  distribution: "cluster-e2e.distribution",
  /** RFC 3339; absent: the cluster has no lifetime. */
  expiresAt: "cluster-e2e.expires-at",
  /**
   * `direct`: nodes are reached at their own addresses wherever the bridge of their network is.
   * Else through the engine.
   */
  reach: "cluster-e2e.reach",
  /** `yes`: nodes reach each other and nothing else. Absent: they reach what this computer reaches. */
  offline: "cluster-e2e.offline",
  createdBy: "cluster-e2e.created-by",
  /**
   * On nodes: the range of the network's addresses, such as `172.18.0.0/16`, to create it again if
   * somebody removes it.
   */
  range: "cluster-e2e.range",
  /** The node's own options in JSON, so that a restored node gets the same ones. */
  settings: "cluster-e2e.settings",
  /** From here on, labels of the images and volumes of snapshots, which restored containers inherit. */
  snapshot: "cluster-e2e.snapshot",
  address: "cluster-e2e.address",
  addressBits: "cluster-e2e.address-bits",
  /** Kilobytes in the node's volumes. */
  volumeSize: "cluster-e2e.volume-size",
  /**
   * This label and the next are on copies of clusters. The address that the node's platform knows,
   * such as `172.18.0.2/16`.
   */
  platformAddress: "cluster-e2e.platform-address",
  /**
   * The creation that the copy's snapshot was made of, and those that this one was copied from,
   * separated by spaces.
   */
  copiedFrom: "cluster-e2e.copied-from",
} as const;

/** The creation whose node a volume belongs to. Not every engine keeps it. */
export const nodeVolumeLabel = "cluster-e2e.node-volume";

export type LabelValues = Readonly<Partial<Record<keyof typeof labelNames, string>>>;

/** Returns the labels as arguments for the engine's command line. Throws if no command could read the values back. */
export function labelArguments(values: LabelValues): readonly string[] {
  assertReadable(values);
  return Object.entries(values).map(
    ([key, value]) => `--label=${labelNames[key as keyof LabelValues]}=${value}`,
  );
}

/** Returns our own labels that are texts, keyed by the names used here. Anyone may have set them. */
export function readLabels(labels: unknown): LabelValues {
  if (!read.isMapping(labels)) return {};
  const found = Object.entries(labelNames).map(([key, name]) => [key, labels[name]] as const);
  return Object.fromEntries(
    found.filter(([, value]) => typeof value === "string" && value !== ""),
  ) as LabelValues;
}

export interface CreationName {
  readonly clusterId: string;
  readonly creationId: string;
}

/** One creation has one network. */
export const networkName = ({ clusterId, creationId }: CreationName): string =>
  `cluster-e2e-${clusterId}-${creationId}`;

/** Two creations of one cluster id can't both have this name. */
export const containerName = (clusterId: string, node: NodeName): string =>
  `cluster-e2e-${clusterId}-${nodeReference(node)}`;

/** The repository of all images of snapshots. The names of their volumes begin with its last part. */
export const snapshotImages = "localhost/cluster-e2e-snapshot";

/** The image of one node in a snapshot. An image from elsewhere has another name, whatever its labels are. */
export const snapshotImage = (creationId: string, snapshot: string, node: NodeName): string =>
  `${snapshotImages}:${creationId}-${snapshot}-${nodeReference(node)}`;

/** The name of that image until the whole snapshot is complete. */
export const draftImage = (creationId: string, snapshot: string, node: NodeName): string =>
  `${snapshotImage(creationId, snapshot, node)}-draft`;

export const snapshotVolume = (creationId: string, snapshot: string, node: NodeName): string =>
  `cluster-e2e-snapshot-${creationId}-${snapshot}-${nodeReference(node)}`;

export type NodeSettings = Pick<ContainerOptions, "customVolumes" | "limits">;

export const settingsText = ({ customVolumes, limits }: NodeSettings): string =>
  JSON.stringify({ volumes: customVolumes, ...limits });

/** Returns `undefined` for a text of another shape: these values become options of the engine's command line. */
export function parseNodeSettings(text: string | undefined): NodeSettings | undefined {
  const found = readSettings(parseJson(text ?? ""));
  return found && { customVolumes: found.volumes, limits: limitsOf(found) };
}

const readSettings = read.object({ volumes: read.list(parseVolume), ...limitFields });
