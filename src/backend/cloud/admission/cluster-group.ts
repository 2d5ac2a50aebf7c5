import type { Instance } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../../errors.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";
import type { CloudApi } from "../api/api.ts";
import { describeGroups, describeInstances } from "../api/describe.ts";
import { type Group, readGroups } from "../records/read-groups.ts";
import { readOwnLaunches } from "../records/own-launches.ts";
import { groupsOf, readMachines } from "../records/read-machines.ts";
import { groupName } from "../records/tags.ts";
import { shownId } from "../../foreign-resource.ts";

/**
 * Returns the cluster's own security group. Anyone in the account may copy tags, and may create a group of the same name in another network. So if
 * this computer created the cluster, only the group that its launch requests named counts. Otherwise it must be the only group of that name with the
 * cluster's tags or machines, and contain one of its machines. Throws `cluster-not-found` if there is none, and `cloud-failed` if there are several, or while the creation has not set it up.
 */
export async function clusterGroup(api: CloudApi, cluster: ClusterName, signal: AbortSignal): Promise<Group> {
  const { id, creationId } = cluster;
  const [instances, described, launches] = await Promise.all([
    describeInstances(api, { creationId }, signal),
    describeGroups(api, { creationId }, signal),
    readOwnLaunches(cluster),
  ]);
  const groups = readGroups(described).groups.filter((each) => each.clusterId === id);
  const used = launches?.groupIds ?? groupIdsOf(instances, id);
  const claimed = launches === undefined ? new Set([...used, ...groups.map((each) => each.id)]) : used;
  const facts = { cluster: id, region: api.region };
  if (used.size > 0 && claimed.size > 1) throw ambiguous(cluster, [...claimed], facts);
  const group = groups.find((each) => used.has(each.id));
  if (group === undefined) {
    throw new ClusterError("cluster-not-found", `Cluster "${id}" has no security group of its own.`, {
      hint: "Its machines have ended, or somebody has changed their groups or the tags of its group. Run the list command to see all clusters.",
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

/** The groups with the name of the cluster's group that its machines use. Whether such a group has tags doesn't matter, since anyone may remove them. */
function groupIdsOf(instances: readonly Instance[], clusterId: string): ReadonlySet<string> {
  const name = groupName(clusterId);
  const { machines, rivals } = readMachines(instances);
  const present = [...machines, ...rivals].filter(
    (machine) => machine.clusterId === clusterId && machine.state !== "ended",
  );
  const ids = new Set(present.map((machine) => machine.id));
  const own = instances.filter(({ InstanceId = "" }) => ids.has(InstanceId)).flatMap(groupsOf);
  return new Set(own.filter(({ GroupName }) => GroupName === name).map(({ GroupId = "" }) => GroupId));
}

function ambiguous(
  { id }: ClusterName,
  groupIds: readonly string[],
  facts: Readonly<Record<string, unknown>>,
): ClusterError {
  const shown = groupIds.map(shownId).toSorted().join(", ");
  return new ClusterError(
    "cloud-failed",
    `Several security groups claim to be the group of cluster "${id}": ${shown}.`,
    {
      hint: "Somebody has copied the cluster's tags, so nothing was changed. Run the command on the computer that created the cluster, or remove the copied tags.",
      facts: { ...facts, groups: groupIds },
    },
  );
}
