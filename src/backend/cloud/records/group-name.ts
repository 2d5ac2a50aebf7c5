/** Returns the name of a cluster's one security group. EC2 accepts a name once per network, which keeps two creations from using one id. */
export function groupName(clusterId: string): string {
  return `cluster-e2e-${clusterId}`;
}
