import { nodeReference, type NodeRecord } from "../../../model/cluster-record.ts";

export interface CreationName {
  readonly clusterId: string;
  readonly creationId: string;
}

/** One creation has one network. */
export const networkName = ({ clusterId, creationId }: CreationName): string =>
  `cluster-e2e-${clusterId}-${creationId}`;

/** Two creations of one cluster id can't both have this name. */
export const containerName = (clusterId: string, node: Pick<NodeRecord, "role" | "index">): string =>
  `cluster-e2e-${clusterId}-${nodeReference(node)}`;

/** The repository of all images of snapshots. The names of their volumes begin with its last part. */
const snapshotImages = "localhost/cluster-e2e-snapshot";

/** The image of one node in a snapshot. An image from elsewhere has another name, whatever its labels are. */
export const snapshotImage = (creationId: string, snapshot: string, node: Pick<NodeRecord, "role" | "index">): string =>
  `${snapshotImages}:${creationId}-${snapshot}-${nodeReference(node)}`;

/** The same image until the whole snapshot is there. */
export const draftImage = (creationId: string, snapshot: string, node: Pick<NodeRecord, "role" | "index">): string =>
  `${snapshotImage(creationId, snapshot, node)}-draft`;

/** The volume with the contents of the node's own volumes. */
export const snapshotVolume = (
  creationId: string,
  snapshot: string,
  node: Pick<NodeRecord, "role" | "index">,
): string => `cluster-e2e-snapshot-${creationId}-${snapshot}-${nodeReference(node)}`;
