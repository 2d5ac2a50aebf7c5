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
