import type { Behaviour } from "../behaviour.ts";
import { isOffered } from "../catalogue/instance-types.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import { isPowered, type LaunchSpecification } from "../state/instance.ts";
import type { Region } from "../state/region.ts";

export interface AskedCount {
  readonly minimum: number;
  readonly maximum: number;
}

/** Returns how many instances can be launched: the maximum of the request, or fewer if its minimum allows that. Throws EC2's error if it doesn't. */
export function launchableCount(
  launch: LaunchSpecification,
  asked: AskedCount,
  region: Region,
  behaviour: Behaviour,
): number {
  const powered = [...region.instances.values()].filter(isPowered);
  const usedVcpus = powered.reduce((sum, instance) => sum + instance.launch.type.vcpus, 0);
  const byQuota = Math.floor((behaviour.vcpuLimit - usedVcpus) / launch.type.vcpus);
  if (byQuota < asked.minimum) throw vcpuLimitExceeded(behaviour.vcpuLimit);
  const { zone } = launch.subnet;
  const zones = region.description.zones;
  if (!isOffered(launch.type, zone, zones)) {
    const others = zones.filter((one) => isOffered(launch.type, one, zones));
    throw unsupported(launch.type.name, zone, others);
  }
  const inZone = powered.filter((instance) => instance.launch.subnet.zone === zone).length;
  const byCapacity = (behaviour.zoneCapacity[zone] ?? Infinity) - inZone;
  if (byCapacity < asked.minimum) {
    throw insufficientCapacity(
      launch.type.name,
      zone,
      zones.filter((one) => one !== zone),
    );
  }
  return Math.min(asked.maximum, byQuota, byCapacity);
}

function vcpuLimitExceeded(limit: number): Ec2Error {
  return new Ec2Error(
    "VcpuLimitExceeded",
    `You have requested more vCPU capacity than your current vCPU limit of ${limit} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.`,
  );
}

function unsupported(type: string, zone: string, others: readonly string[]): Ec2Error {
  return new Ec2Error(
    "Unsupported",
    `Your requested instance type (${type}) is not supported in your requested Availability Zone (${zone}). Please retry your request by not specifying an Availability Zone or choosing ${others.join(", ")}.`,
  );
}

function insufficientCapacity(type: string, zone: string, others: readonly string[]): Ec2Error {
  return new Ec2Error(
    "InsufficientInstanceCapacity",
    `We currently do not have sufficient ${type} capacity in the Availability Zone you requested (${zone}). Our system will be working on provisioning additional capacity. You can currently get ${type} capacity by not specifying an Availability Zone in your request or choosing ${others.join(", ")}.`,
  );
}
