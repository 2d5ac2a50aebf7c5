import { endText } from "../../../system/amounts.ts";
import { isIPv4, isIPv6 } from "node:net";
import type { SecurityGroup, Subnet } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { parseMoment } from "../../../model/parse-values.ts";
import { networkFailure } from "../../../system/network-failure.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock, Work } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import { slowNote } from "../../../system/time-limit.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { shownId } from "../../shared/foreign-resource.ts";
import { admissions } from "../admin-cidrs.ts";
import { isFailure } from "../api/api-errors.ts";
import { type CloudApi, collectPages, untilVisible } from "../api/api.ts";
import { requestDirectly } from "../api/request-handler.ts";
import { isPastDeadline } from "../lifetime.ts";
import type { Machine, MachineReading } from "../read-machines.ts";
import { type TagValues, groupName, readTags, toTags } from "../tags.ts";

export interface LaunchSubnet {
  readonly id: string;
  readonly vpcId: string;
  readonly zone: string;
}

/**
 * Returns the default network's subnets, one per zone, the emptiest first, or the chosen subnet.
 * Throws `no-default-network`.
 */
export async function findSubnets(
  api: CloudApi,
  chosen: string | undefined,
  signal: AbortSignal,
): Promise<readonly LaunchSubnet[]> {
  const query =
    chosen === undefined
      ? { Filters: [{ Name: "default-for-az", Values: ["true"] }] }
      : { SubnetIds: [chosen] };
  const subnets = await collectPages(
    api,
    ["DescribeSubnets", query],
    ({ Subnets }) => Subnets,
    signal,
  );
  const usable = subnets.filter(isUsable).toSorted(byFreeAddresses);
  if (usable.length === 0) throw noNetwork(api.region, chosen, subnets);
  return usable.map((subnet) => ({
    id: subnet.SubnetId ?? "",
    vpcId: subnet.VpcId ?? "",
    zone: subnet.AvailabilityZone ?? "",
  }));
}

/** Nodes are reached at IPv4 addresses, which the API refuses to give machines in other subnets. */
export const isUsable = ({ State, Ipv6Native }: Subnet): boolean =>
  State === "available" && Ipv6Native !== true;

export interface GroupRequest {
  readonly clusterId: string;
  readonly vpcId: string;
  /** The tags of the creation: they tell our own group from another's. */
  readonly tags: TagValues;
}

/**
 * Creates the cluster's one security group and returns its id. Its name is unique in the network and serves as the lock
 * between two creates. Throws `cluster-exists` if another creation holds it.
 */
export async function createGroup(
  api: CloudApi,
  request: GroupRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  const name = groupName(request.clusterId);
  try {
    const answer = await api.call(
      "CreateSecurityGroup",
      {
        GroupName: name,
        Description: `Test cluster ${request.clusterId}`,
        VpcId: request.vpcId,
        TagSpecifications: [
          { ResourceType: "security-group", Tags: toTags(name, request.tags, []) },
        ],
      },
      signal,
    );
    return answer.GroupId ?? "";
  } catch (error) {
    if (!isFailure(error, "group-exists")) throw error;
    return await ownGroup(api, request, clock, signal);
  }
}

/** Returns the group that already has the name. It is ours if the answer to the first request was lost. */
async function ownGroup(
  api: CloudApi,
  request: GroupRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  // If it was created so recently that it can't be described yet, it will be soon.
  const group = await poll(
    (inner) => groupNamed(api, request, inner),
    ruleOf(waits.namesake, clock),
    signal,
  );
  const tags = readTags(group?.Tags);
  if (group?.GroupId !== undefined && tags.creationId === request.tags.creationId)
    return group.GroupId;
  throw clusterExists({
    clusterId: request.clusterId,
    region: api.region,
    expiresAt: parseMoment(tags.expiresAt),
    nowMs: api.now(),
    group: group && shownId(group.GroupId),
  });
}

async function groupNamed(
  api: CloudApi,
  request: GroupRequest,
  signal: AbortSignal,
): Promise<SecurityGroup | undefined> {
  const filters = { "group-name": groupName(request.clusterId), "vpc-id": request.vpcId };
  const Filters = Object.entries(filters).map(([Name, value]) => ({ Name, Values: [value] }));
  const answer = await api.call("DescribeSecurityGroups", { Filters }, signal);
  return answer.SecurityGroups?.[0];
}

/** Lets the nodes talk to each other on every port, and lets the ranges reach the given ports. */
export async function openGroup(
  api: CloudApi,
  rules: {
    readonly groupId: string;
    readonly cidrs: readonly string[];
    readonly ports: readonly number[];
  },
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const itself = { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: rules.groupId }] };
  const IpPermissions = [itself, ...admissions(rules.cidrs, rules.ports)];
  const ask = () =>
    api.call("AuthorizeSecurityGroupIngress", { GroupId: rules.groupId, IpPermissions }, signal);
  try {
    await untilVisible(ask, "group-missing", clock, signal);
  } catch (error) {
    // The group is this creation's own. The rules can only exist because the answer to the first request was lost.
    if (!isFailure(error, "rule-exists")) throw error;
  }
}

function byFreeAddresses(a: Subnet, b: Subnet): number {
  const zones = (a.AvailabilityZone ?? "").localeCompare(b.AvailabilityZone ?? "");
  return (b.AvailableIpAddressCount ?? 0) - (a.AvailableIpAddressCount ?? 0) || zones;
}

function noNetwork(
  region: string,
  chosen: string | undefined,
  subnets: readonly Subnet[],
): ClusterError {
  const [what, it] =
    chosen === undefined
      ? ["no default network with a subnet", "what is there"]
      : [`no usable subnet ${chosen}`, "it"];
  const why = subnets.some(({ Ipv6Native }) => Ipv6Native === true)
    ? `: nodes have IPv4 addresses, and ${it} is for IPv6 only`
    : "";
  return new ClusterError("no-default-network", `Region ${region} has ${what}${why}.`, {
    hint: `Pass a subnet that assigns public addresses with ${optionName("subnetId")}, or choose another ${optionName("region")}.`,
    facts: { region, subnet: chosen },
  });
}

const defaultUrl = "https://checkip.amazonaws.com";
const timeoutMs = 10_000;

/**
 * Returns this machine's public IPv4 address: nodes have no other. Throws `machine-not-set-up` with
 * the option that makes it unnecessary.
 */
export async function checkAddress({
  environment,
  progress,
  signal,
}: Pick<Work, "environment" | "progress" | "signal">): Promise<string> {
  const url = variable(environment, "CLUSTER_CHECK_ADDRESS_URL") ?? defaultUrl;
  using _slow = slowNote(() =>
    progress.note(`Waiting for ${url} to name this computer's public address.`),
  );
  try {
    const answer = await requestDirectly(
      { url: new URL(url), method: "GET", headers: {}, timeoutMs, overIpv4: true },
      signal,
    );
    const address = answer.text.trim();
    if (answer.status === 200 && isIPv4(address)) return address;
    if (answer.status === 200 && isIPv6(address))
      throw addressUnknown(
        url,
        `it answered with the IPv6 address ${address}, but nodes have IPv4 addresses only`,
        undefined,
      );
    throw addressUnknown(
      url,
      `it answered with status ${answer.status} and without an address`,
      undefined,
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    const { reason, code } = networkFailure(error);
    throw addressUnknown(url, `${reason} (${code})`, error);
  }
}

function addressUnknown(url: string, reason: string, cause: unknown): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `Cannot find out this computer's public address from ${url}: ${reason}.`,
    {
      hint: `Pass the addresses that may reach the cluster with ${optionName("adminCidrs")}.`,
      facts: { url },
      cause,
    },
  );
}

/**
 * Throws `cluster-exists` if machines of this cluster id exist. Ignores machines that are ending, and those past their
 * deadline, which `removeExpired` terminates; `leaving` are creations that are about to be removed.
 */
export function assertIdIsFree(
  { machines }: Pick<MachineReading, "machines">,
  wanted: {
    readonly clusterId: string;
    readonly region: string;
    readonly nowMs: number;
    readonly leaving: readonly string[];
  },
): void {
  const { clusterId, region, nowMs, leaving } = wanted;
  for (const machine of machines) {
    if (machine.clusterId !== clusterId || leaving.includes(machine.creationId)) continue;
    if (machine.state === "ended" || machine.isShuttingDown || isOver(machine, nowMs)) continue;
    throw clusterExists({ clusterId, region, expiresAt: machine.expiresAt, nowMs });
  }
}

/** For a machine outside its cluster's group, only the tag counts, because nothing terminates it. */
function isOver(machine: Machine, nowMs: number): boolean {
  if (machine.isInItsGroup) return isPastDeadline(machine, nowMs);
  return machine.expiresAt !== undefined && machine.expiresAt.getTime() < nowMs;
}

export function clusterExists(present: {
  readonly clusterId: string;
  readonly region: string;
  readonly expiresAt: Date | undefined;
  readonly nowMs: number;
  /** The security group that holds the name, if nothing else is known. */
  readonly group?: string | undefined;
}): ClusterError {
  const { clusterId, region, expiresAt, group } = present;
  const end = expiresAt === undefined ? "" : ` It ends ${endText(expiresAt, present.nowMs)}.`;
  const held = group === undefined ? "" : ` (security group ${group})`;
  const message = `A cluster "${clusterId}" already exists or is being created in region ${region}${held}.${end}`;
  return new ClusterError("cluster-exists", message, {
    hint: `Choose another ${optionName("clusterId")}, or wait until that cluster has terminated.`,
    facts: { cluster: clusterId, region, expiresAt: expiresAt?.toISOString(), group },
  });
}
