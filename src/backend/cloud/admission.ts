import type { Instance, IpPermission } from "@aws-sdk/client-ec2";
import { ClusterError, hasErrorId, revised } from "../../errors.ts";
import { commandName, runCommand } from "../../references.ts";
import type { ClusterName } from "../../model/cluster-record.ts";
import type { Runtime, Work } from "../../system/runtime.ts";
import type { Admission, AdmissionRequest, AdmittedRange } from "../admission.ts";
import { shownId } from "../shared/foreign-resource.ts";
import { admissionProblem, admissions, cidrProblem, normalizeCidr } from "./admin-cidrs.ts";
import { isFailure } from "./api/api-errors.ts";
import { type CloudApi, describeGroups, describeInstances } from "./api/api.ts";
import { isAllowedAddress } from "./launch/look-at-machines.ts";
import { checkAddress } from "./launch/network.ts";
import { readOwnLaunches } from "./launch/saved-requests.ts";
import { type Group, groupsOf, readGroups, readMachines } from "./read-machines.ts";
import { groupName } from "./tags.ts";

const sshPort = 22;
const mostAttempts = 3;

/** Changes the rules of clusters' own security groups, and nothing else. See Admission. */
export function cloudAdmission(
  api: CloudApi,
  runtime: Pick<Runtime, "environment" | "progress">,
): Admission {
  return {
    list: async (cluster, signal) => admittedRanges(await clusterGroup(api, cluster, signal)),
    admit: async (cluster, { range, openPorts }, signal) => {
      const chosen =
        range === undefined
          ? await ownRange({ ...runtime, signal })
          : parseRange(range, admissionProblem);
      await admit(api, cluster, { range: chosen, openPorts }, signal);
      return chosen;
    },
    remove: async (cluster, range, signal) => {
      const chosen = parseRange(range, cidrProblem);
      await revoke(api, cluster, chosen, signal);
      return chosen;
    },
  };
}

async function admit(
  api: CloudApi,
  cluster: ClusterName,
  { range, openPorts }: AdmissionRequest & { readonly range: string },
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const group = await clusterGroup(api, cluster, signal);
    const known = admittedPorts(group);
    const ports = known.length === 0 ? [sshPort, ...openPorts] : known;
    const missing = ports.filter((port) => !isPortAdmitted(group, range, port));
    if (missing.length === 0) return;
    const request = { GroupId: group.id, IpPermissions: admissions([range], missing) };
    try {
      await api.call("AuthorizeSecurityGroupIngress", request, signal);
      return;
    } catch (error) {
      // Somebody else admits the same range right now. If one rule exists, the API refuses the whole request.
      if (!isFailure(error, "rule-exists") || attempt === mostAttempts) throw error;
    }
  }
}

async function revoke(
  api: CloudApi,
  cluster: ClusterName,
  range: string,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const group = await clusterGroup(api, cluster, signal);
    const IpPermissions = rulesFor(group, range);
    if (IpPermissions.length === 0 && attempt === 1) throw notAdmitted(cluster, range, group);
    if (IpPermissions.length === 0) return;
    try {
      await api.call("RevokeSecurityGroupIngress", { GroupId: group.id, IpPermissions }, signal);
      return;
    } catch (error) {
      // The first answer was lost, or somebody else removed one of the rules: then none of the others was removed.
      if (!isFailure(error, "rule-missing") || attempt === mostAttempts) throw error;
    }
  }
}

function parseRange(given: string, problemOf: (text: string) => string | undefined): string {
  const problem = problemOf(given);
  if (problem !== undefined) throw new ClusterError("bad-usage", `${problem}.`);
  return normalizeCidr(given);
}

async function ownRange(work: Pick<Work, "environment" | "progress" | "signal">): Promise<string> {
  try {
    return normalizeCidr(await checkAddress(work));
  } catch (error) {
    if (!hasErrorId(error, "machine-not-set-up")) throw error;
    throw revised(error, {
      hint: `Pass this computer's public address to ${commandName("admit")}.`,
    });
  }
}

function notAdmitted({ id }: ClusterName, range: string, group: Group): ClusterError {
  const ranges = admittedRanges(group).map((admitted) => admitted.range);
  return new ClusterError("bad-usage", `${range} is not admitted to cluster "${id}".`, {
    hint:
      ranges.length === 0
        ? "No address is admitted to it."
        : `These ranges are admitted: ${ranges.join(", ")}`,
    facts: { cluster: id, ranges },
  });
}

/**
 * Returns the cluster's own security group. Anyone in the account may copy tags, and may create a
 * group of the same name in another network. So if this computer created the cluster, only the
 * group in its launch requests counts. Otherwise, it must contain one of the cluster's machines,
 * and be the only group of that name with the cluster's tags or machines. Throws
 * `cluster-not-found` if there is no such group, and `cloud-failed` if there are several, or while
 * the creation is still setting it up.
 */
async function clusterGroup(
  api: CloudApi,
  cluster: ClusterName,
  signal: AbortSignal,
): Promise<Group> {
  const { id, creationId } = cluster;
  const [instances, described, launches] = await Promise.all([
    describeInstances(api, { creationId }, signal),
    describeGroups(api, { creationId }, signal),
    readOwnLaunches(cluster),
  ]);
  const groups = readGroups(described).groups.filter((each) => each.clusterId === id);
  const used = launches?.groupIds ?? groupIdsOf(instances, id);
  const claimed =
    launches === undefined ? new Set([...used, ...groups.map((each) => each.id)]) : used;
  const facts = { cluster: id, region: api.region };
  if (used.size > 0 && claimed.size > 1) throw ambiguous(cluster, [...claimed], facts);
  const group = groups.find((each) => used.has(each.id));
  if (group === undefined) {
    throw new ClusterError(
      "cluster-not-found",
      `Cluster "${id}" has no security group of its own.`,
      {
        hint: `Its machines have ended, or somebody has changed their groups or the tags of its group. ${runCommand("list")} to see all clusters.`,
        facts,
      },
    );
  }
  // If the creation finds that one of its rules exists, it assumes that its own request added it. So nothing else may
  // add rules before it has.
  if (
    !group.rules.some(({ UserIdGroupPairs = [] }) =>
      UserIdGroupPairs.some(({ GroupId }) => GroupId === group.id),
    )
  ) {
    throw new ClusterError(
      "cloud-failed",
      `The security group of cluster "${id}" is still being set up.`,
      {
        hint: "Try again in a few seconds.",
        transient: true,
        facts,
      },
    );
  }
  return group;
}

/**
 * Returns the groups with the name of the cluster's group that its machines use, with or without
 * tags: anyone may remove tags.
 */
function groupIdsOf(instances: readonly Instance[], clusterId: string): ReadonlySet<string> {
  const name = groupName(clusterId);
  const { machines, rivals } = readMachines(instances);
  const present = [...machines, ...rivals].filter(
    (machine) => machine.clusterId === clusterId && machine.state !== "ended",
  );
  const ids = new Set(present.map((machine) => machine.id));
  const own = instances.filter(({ InstanceId = "" }) => ids.has(InstanceId)).flatMap(groupsOf);
  return new Set(
    own.filter(({ GroupName }) => GroupName === name).map(({ GroupId = "" }) => GroupId),
  );
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

type Rules = Pick<Group, "rules">;

export function admittedRanges({ rules }: Rules): readonly AdmittedRange[] {
  const pairs = rules.flatMap((rule) =>
    rangesOf(rule).map((range) => ({ range, port: portText(rule) })),
  );
  const byRange = Map.groupBy(pairs, ({ range }) => range);
  return [...byRange].map(([range, members]) => ({
    range,
    ports: [...new Set(members.map(({ port }) => port))],
  }));
}

/** Returns the single TCP ports that any range may reach. */
export function admittedPorts({ rules }: Rules): readonly number[] {
  const ports = rules
    .filter(
      (rule) =>
        rule.IpProtocol === "tcp" && rule.FromPort === rule.ToPort && rangesOf(rule).length > 0,
    )
    .flatMap(({ FromPort }) => FromPort ?? []);
  return [...new Set(ports)];
}

/** Whether a rule admits exactly this range to exactly this TCP port: the cloud refuses a second such rule. */
export function isPortAdmitted(group: Rules, range: string, port: number): boolean {
  return rulesFor(group, range).some(
    ({ IpProtocol, FromPort, ToPort }) =>
      IpProtocol === "tcp" && FromPort === port && ToPort === port,
  );
}

/** Returns all rules that admit exactly this range, without the other sources of these rules. */
export function rulesFor({ rules }: Rules, range: string): IpPermission[] {
  return rules.flatMap(({ IpProtocol, FromPort, ToPort, IpRanges = [], Ipv6Ranges = [] }) => {
    const rule = { IpProtocol, FromPort, ToPort };
    const version4 = IpRanges.filter(({ CidrIp }) => isSameRange(CidrIp, range)).map(
      ({ CidrIp }) => ({ CidrIp }),
    );
    const version6 = Ipv6Ranges.filter(({ CidrIpv6 }) => isSameRange(CidrIpv6, range)).map(
      ({ CidrIpv6 }) => ({
        CidrIpv6,
      }),
    );
    return [
      ...(version4.length > 0 ? [{ ...rule, IpRanges: version4 }] : []),
      ...(version6.length > 0 ? [{ ...rule, Ipv6Ranges: version6 }] : []),
    ];
  });
}

/** Returns the address ranges of a rule, without texts that are no ranges. */
export function rangesOf({ IpRanges = [], Ipv6Ranges = [] }: IpPermission): readonly string[] {
  const found = [
    ...IpRanges.map(({ CidrIp }) => CidrIp),
    ...Ipv6Ranges.map(({ CidrIpv6 }) => CidrIpv6),
  ];
  return found
    .filter((range) => range !== undefined)
    .filter((range) => cidrProblem(range) === undefined);
}

function portText({ IpProtocol, FromPort, ToPort }: IpPermission): string {
  if (IpProtocol === "-1" || FromPort === undefined || ToPort === undefined) return "all";
  const ports = FromPort === ToPort ? `${FromPort}` : `${FromPort}-${ToPort}`;
  return IpProtocol === "tcp" ? ports : `${ports}/${IpProtocol}`;
}

/** The cloud clears the bits after the prefix, and shortens IPv6 addresses, so the texts may differ. */
function isSameRange(found: string | undefined, range: string): boolean {
  if (found === undefined || cidrProblem(found) !== undefined) return false;
  const [address = "", bits] = range.split("/");
  return found.split("/")[1] === bits && isAllowedAddress(address, [found]);
}
