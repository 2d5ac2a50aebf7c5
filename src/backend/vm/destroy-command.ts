/** Returns the command, for people, that removes a cluster. */
export const destroyCommand = (clusterId: string): string => `cluster-vm destroy --cluster-id ${clusterId}`;
