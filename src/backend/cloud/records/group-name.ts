/** Of the one security group of a cluster. EC2 takes a name once a network: that is what keeps two creations from one id. */
export function groupName(clusterId: string): string {
  return `cluster-e2e-${clusterId}`;
}
