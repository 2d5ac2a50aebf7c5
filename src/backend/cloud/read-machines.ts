import type { GroupIdentifier, Instance, SecurityGroup } from "@aws-sdk/client-ec2";
import {
  type ClusterRecord,
  type Counts,
  type NodeRecord,
  type NodeState,
  nodeReference,
} from "../../model/cluster-record.ts";
import { parseIndex, parseIpv4 } from "../../model/parse-values.ts";
import { plainLine } from "../../system/printable.ts";
import { type ForeignResource, readEach, shownId, readTexts } from "../shared/foreign-resource.ts";
import { parseInstanceId, groupName, readTags, tagNames } from "./tags.ts";
import type { OwnLaunches } from "./launch/saved-requests.ts";

/** A machine whose tags say which node of which cluster it is, with everything else they say. */
export interface Machine
  extends
    Pick<NodeRecord, "id" | "role" | "index" | "state" | "publicAddress" | "privateAddress">,
    Pick<ClusterRecord, "creationId" | "variant" | "webUi" | "platform" | "expiresAt"> {
  readonly clusterId: string;
  readonly sshUser: string;
  readonly counts: Counts | undefined;
  readonly distribution: string | undefined;
  /** The machine is being terminated; false for one that was only stopped. */
  readonly isShuttingDown: boolean;
  readonly stateReason: string | undefined;
  readonly launchedAt: Date | undefined;
  readonly instanceType: string;
  readonly groupIds: readonly string[];
  readonly isInItsGroup: boolean;
}

export interface MachineReading {
  readonly machines: readonly Machine[];
  /** Machines with the tags of a node that another machine is. Either of the two may be ours. */
  readonly rivals: readonly Machine[];
  /** Leaves out machines that have ended. */
  readonly foreignResources: readonly ForeignResource[];
}

/**
 * Reads the API's descriptions of machines with our tags. Anyone who may tag can set these, so a
 * machine is ours only if its tags have the shape that this program writes, and if this computer
 * launched it, where it launched the creation. If two machines claim to be the same node, the one
 * in the cluster's security group wins, or else the older one.
 */
export function readMachines(
  instances: readonly Instance[],
  launches: ReadonlyMap<string, OwnLaunches> = new Map(),
): MachineReading {
  const machines: Machine[] = [];
  const rivals: Machine[] = [];
  const foreignResources: ForeignResource[] = [];
  const elders = new Map<string, Machine>();
  const refuse = (id: string | undefined, why: string): void => {
    foreignResources.push({ what: `instance ${shownId(id)}`, why });
  };
  const candidates = instances.map((instance) => ({
    instance,
    isInItsGroup: isInItsGroup(instance),
  }));
  for (const { instance } of candidates.toSorted(byTrust)) {
    const machine = readMachine(instance);
    if (typeof machine === "string") {
      if (nodeState(instance) !== "ended") refuse(instance.InstanceId, machine);
      continue;
    }
    if (launches.get(machine.creationId)?.machineIds.has(machine.id) === false) {
      if (machine.state !== "ended")
        refuse(machine.id, "its tags name a cluster of this computer, which did not launch it");
      continue;
    }
    const name = `${machine.clusterId} ${machine.creationId} ${nodeReference(machine)}`;
    const elder = elders.get(name);
    if (elder === undefined) {
      elders.set(name, machine);
      machines.push(machine);
      continue;
    }
    rivals.push(machine);
    refuse(
      machine.id,
      `its tags say that it is ${nodeReference(machine)}, but ${elder.id} is that node`,
    );
  }
  return { machines, rivals, foreignResources };
}

/**
 * Tags can be copied to an older instance, but not everyone who may tag can also put an instance
 * into a security group.
 */
function byTrust(a: Candidate, b: Candidate): number {
  const byGroup = Number(b.isInItsGroup) - Number(a.isInItsGroup);
  const ageOf = ({ instance }: Candidate): number =>
    instance.LaunchTime?.getTime() ?? Number.MAX_SAFE_INTEGER;
  const byId = (a.instance.InstanceId ?? "").localeCompare(b.instance.InstanceId ?? "");
  return byGroup || ageOf(a) - ageOf(b) || byId;
}

interface Candidate {
  readonly instance: Instance;
  readonly isInItsGroup: boolean;
}

function isInItsGroup(instance: Instance): boolean {
  const name = groupName(readTags(instance.Tags).clusterId ?? "");
  return groupsOf(instance).some(({ GroupName }) => GroupName === name);
}

/** Some implementations of EC2 name a machine's groups only at its network interfaces. */
export const groupsOf = ({
  SecurityGroups = [],
  NetworkInterfaces = [],
}: Instance): readonly GroupIdentifier[] => [
  ...SecurityGroups,
  ...NetworkInterfaces.flatMap(({ Groups = [] }) => Groups),
];

/** Returns a machine, or what is wrong with it. */
function readMachine(instance: Instance): Machine | string {
  const tags = readTags(instance.Tags);
  const known = readTexts(
    { kind: "tag", names: tagNames, texts: tags },
    {
      required: ["clusterId", "creationId", "role", "variant", "sshUser"],
      optional: ["counts", "distribution", "webUi", "platform", "expiresAt", "indexBase"],
    },
  );
  if (typeof known === "string") return known;
  const { indexBase, ...others } = known;
  const index = parseIndex((indexBase ?? 0) + (instance.AmiLaunchIndex ?? 0));
  if (index === undefined) return "its number is too high for a node";
  const id = parseInstanceId(instance.InstanceId);
  if (id === undefined) return "its id is malformed";
  const addresses = addressesOf(instance);
  if (addresses === undefined) return "its addresses are malformed";
  return {
    id,
    ...others,
    index,
    ...addresses,
    state: nodeState(instance),
    isShuttingDown: instance.State?.Name === "shutting-down",
    stateReason:
      plainLine(instance.StateReason?.Message) ||
      plainLine(instance.StateTransitionReason) ||
      undefined,
    launchedAt: instance.LaunchTime,
    instanceType: instance.InstanceType ?? "",
    groupIds: [...new Set(groupsOf(instance).map(({ GroupId = "" }) => GroupId))],
    isInItsGroup: isInItsGroup(instance),
  };
}

function addressesOf(instance: Instance) {
  const { PublicIpAddress, PrivateIpAddress } = instance;
  const publicAddress = parseIpv4(PublicIpAddress);
  const privateAddress = parseIpv4(PrivateIpAddress);
  const isWrong =
    (publicAddress ?? "") !== (PublicIpAddress ?? "") ||
    (privateAddress ?? "") !== (PrivateIpAddress ?? "");
  return isWrong ? undefined : { publicAddress, privateAddress };
}

/** A stopped machine counts as ending, because ours are never started again. */
export function nodeState(instance: Instance): NodeState {
  switch (instance.State?.Name) {
    case "running":
      return "running";
    case "stopping":
    case "stopped":
    case "shutting-down":
      return "ending";
    case "terminated":
      return "ended";
    case "pending":
    case undefined:
    default:
      return "starting";
  }
}

/** A cluster's security group. */
export interface Group {
  readonly id: string;
  readonly clusterId: string;
  readonly creationId: string;
  readonly expiresAt: Date | undefined;
  readonly rules: NonNullable<SecurityGroup["IpPermissions"]>;
}

export interface GroupReading {
  readonly groups: readonly Group[];
  readonly foreignResources: readonly ForeignResource[];
}

/**
 * Reads the API's descriptions of security groups with our tags. A group belongs to a cluster only
 * if it has that cluster's name, which can't be changed.
 */
export function readGroups(described: readonly SecurityGroup[]): GroupReading {
  const nameOf = ({ GroupId }: SecurityGroup): string => shownId(GroupId);
  const { read: groups, foreignResources } = readEach(
    "security group",
    described,
    readGroup,
    nameOf,
  );
  return { groups, foreignResources };
}

/** Returns a group, or what is wrong with it. */
function readGroup(group: SecurityGroup): Group | string {
  const tags = readTags(group.Tags);
  const known = readTexts(
    { kind: "tag", names: tagNames, texts: tags },
    { required: ["clusterId", "creationId"], optional: ["expiresAt"] },
  );
  if (typeof known === "string") return known;
  const id = group.GroupId ?? "";
  if (!/^sg-[0-9a-f]{8,17}$/.test(id)) return "its id is malformed";
  if (group.GroupName !== groupName(known.clusterId))
    return "its name is not the name of its cluster's group";
  return { id, ...known, rules: group.IpPermissions ?? [] };
}
