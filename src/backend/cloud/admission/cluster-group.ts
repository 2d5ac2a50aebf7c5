import { ClusterError } from "../../../errors.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";
import type { CloudApi } from "../api/api.ts";
import { describeGroups, describeInstances } from "../api/describe.ts";
import { type Group, readGroups } from "../records/read-groups.ts";
import { readMachines } from "../records/read-machines.ts";

/**
 * Returns the cluster's own security group. Anyone in the account may copy tags, so it must also have the cluster's
 * name and contain one of its machines. Throws `cluster-not-found` if there is none, and `cloud-failed` while the
 * creation has not set it up.
 */
export async function clusterGroup(
  api: CloudApi,
  { id, creationId }: ClusterName,
  signal: AbortSignal,
): Promise<Group> {
  const [instances, described] = await Promise.all([
    describeInstances(api, { creationId }, signal),
    describeGroups(api, { creationId }, signal),
  ]);
  const machines = readMachines(instances).machines.filter(
    (machine) => machine.clusterId === id && machine.state !== "ended" && machine.isInItsGroup,
  );
  const used = new Set(machines.flatMap(({ groupIds }) => groupIds));
  const group = readGroups(described).groups.find((each) => each.clusterId === id && used.has(each.id));
  const facts = { cluster: id, region: api.region };
  if (group === undefined) {
    throw new ClusterError("cluster-not-found", `Cluster "${id}" has no security group of its own.`, {
      hint: "Its machines have ended, or were moved to another group. Run the list command to see all clusters.",
      facts,
    });
  }
  // If the creation finds that one of its rules exists, it assumes that its own request added it. So nothing else may
  // add rules before it has.
  if (!group.rules.some(({ UserIdGroupPairs = [] }) => UserIdGroupPairs.some(({ GroupId }) => GroupId === group.id))) {
    throw new ClusterError("cloud-failed", `The security group of cluster "${id}" is still being set up.`, {
      hint: "Try again in a few seconds.",
      transient: true,
      facts,
    });
  }
  return group;
}
