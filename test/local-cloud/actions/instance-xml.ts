import type { Tags } from "../endpoint/filters.ts";
import type { XmlObject } from "../endpoint/xml.ts";
import { isAlive, type Instance, type InstanceState } from "../state/instance.ts";
import type { Region } from "../state/region.ts";
import { tagsXml } from "./tags.ts";
import { visibleTags } from "./visible-tags.ts";

const stateCodes: Readonly<Record<InstanceState, number>> = {
  pending: 0,
  running: 16,
  "shutting-down": 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
};

export function stateXml(state: InstanceState): XmlObject {
  return { code: stateCodes[state], name: state };
}

/** Groups the instances by reservation, as DescribeInstances returns them. Without `hasGroups`, only network interfaces name security groups. */
export function reservationsXml(
  instances: readonly Instance[],
  region: Region,
  { hasGroups }: { readonly hasGroups: boolean },
): readonly XmlObject[] {
  const reservations = Map.groupBy(instances, (instance) => instance.reservationId);
  return [...reservations.values()].map((members) =>
    reservationXml(members, region, { tagsOf: visibleTags, hasGroups }),
  );
}

/** Renders one reservation. `instances` must not be empty. `tagsOf`: the response to RunInstances contains tags at once, later calls may not. */
export function reservationXml(
  instances: readonly Instance[],
  region: Region,
  {
    tagsOf,
    hasGroups,
  }: { readonly tagsOf: (instance: Instance) => Tags; readonly hasGroups: boolean },
): XmlObject {
  const { reservationId, accountId } = instances[0]!;
  return {
    reservationId,
    ownerId: accountId,
    groupSet: [],
    instancesSet: instances.map((instance) => ({
      ...instanceXml(instance, region),
      ...(!hasGroups && { groupSet: [] }),
      tagSet: tagsXml(tagsOf(instance)),
    })),
  };
}

function instanceXml(instance: Instance, region: Region): XmlObject {
  const { launch } = instance;
  return {
    instanceId: instance.id,
    imageId: launch.image.id,
    instanceState: stateXml(instance.state),
    reason: instance.transitionReason,
    stateReason: instance.stateReason === undefined ? undefined : { ...instance.stateReason },
    amiLaunchIndex: instance.launchIndex,
    instanceType: launch.type.name,
    launchTime: instance.launchTime,
    placement: { availabilityZone: launch.subnet.zone, groupName: "", tenancy: "default" },
    monitoring: { state: "disabled" },
    architecture: launch.image.architecture,
    rootDeviceType: "ebs",
    rootDeviceName: launch.image.rootDeviceName,
    virtualizationType: launch.image.virtualizationType,
    hypervisor: "xen",
    enaSupport: true,
    clientToken: launch.clientToken ?? "",
    metadataOptions: { state: "applied", ...instance.metadataOptions },
    ...(isAlive(instance) ? networkXml(instance, region) : { privateDnsName: "", dnsName: "" }),
  };
}

function networkXml(instance: Instance, region: Region): XmlObject {
  const { subnet } = instance.launch;
  return {
    vpcId: subnet.vpcId,
    subnetId: subnet.id,
    privateIpAddress: instance.privateAddress,
    privateDnsName: `ip-${instance.privateAddress.replaceAll(".", "-")}.${region.name}.compute.internal`,
    dnsName: "",
    ipAddress: publicAddress(instance),
    sourceDestCheck: true,
    groupSet: groupsXml(instance, region),
    blockDeviceMapping: instance.volumes.map((volume) => ({
      deviceName: volume.deviceName,
      ebs: {
        volumeId: volume.id,
        status: "attached",
        deleteOnTermination: volume.deleteOnTermination,
      },
    })),
    networkInterfaceSet: [interfaceXml(instance, region)],
  };
}

const groupsXml = ({ launch }: Instance, region: Region): readonly XmlObject[] =>
  launch.groupIds.map((groupId) => ({ groupId, groupName: region.groups.get(groupId)?.name }));

export const interfaceId = ({ id }: Instance): string => `eni-${id.slice(2)}`;

/** What both an instance and a network interface by itself say about it. */
export function interfaceXml(instance: Instance, region: Region) {
  const { subnet } = instance.launch;
  return {
    networkInterfaceId: interfaceId(instance),
    subnetId: subnet.id,
    vpcId: subnet.vpcId,
    status: "in-use",
    privateIpAddress: instance.privateAddress,
    groupSet: groupsXml(instance, region),
    attachment: {
      attachmentId: `eni-attach-${instance.id.slice(2)}`,
      deviceIndex: 0,
      status: "attached",
      deleteOnTermination: true,
    },
  };
}

/** EC2 returns the public address only while the machine runs or is about to. */
export function publicAddress(instance: Instance): string | undefined {
  return instance.state === "pending" || instance.state === "running"
    ? instance.publicAddress
    : undefined;
}
