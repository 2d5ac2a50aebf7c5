/** For people: how a cluster is removed. */
export const destroyCommand = (clusterId: string): string => `cluster-vm destroy --cluster-id ${clusterId}`;
