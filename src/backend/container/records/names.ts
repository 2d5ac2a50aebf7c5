import { nodeReference, type NodeRecord } from "../../../model/cluster-record.ts";

/** One creation of a cluster. */
export interface CreationName {
  readonly clusterId: string;
  readonly creationId: string;
}

/** One creation has one network. */
export const networkName = ({ clusterId, creationId }: CreationName): string =>
  `cluster-e2e-${clusterId}-${creationId}`;

/** Two creations of one cluster id can't both have it. */
export const containerName = (clusterId: string, node: Pick<NodeRecord, "role" | "index">): string =>
  `cluster-e2e-${clusterId}-${nodeReference(node)}`;
