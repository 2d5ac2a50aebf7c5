import type { Subnet } from "../catalogue/networks.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { Parameters } from "../endpoint/parameters.ts";
import type { LaunchSpecification } from "../state/instance.ts";
import type { Region } from "../state/region.ts";

type Place = Pick<LaunchSpecification, "subnet" | "groupIds" | "givesPublicAddress">;

/** Where the instances are launched: their subnet, security groups, and whether they get public addresses. */
export function readPlace(parameters: Parameters, region: Region): Place {
  const network = networkSettings(parameters);
  const subnet = subnetOf(
    network.text("SubnetId"),
    parameters.text("Placement.AvailabilityZone"),
    region,
  );
  const asked = network.texts("SecurityGroupId");
  const groupIds = asked.length === 0 ? [region.defaultGroupOf(subnet.vpcId).id] : asked;
  for (const id of groupIds) checkGroup(id, subnet, region);
  const givesPublicAddress =
    network.boolean("AssociatePublicIpAddress") ?? subnet.givesPublicAddresses;
  return { subnet, groupIds, givesPublicAddress };
}

/** A request specifies subnet and groups either in its only network interface or at the top level, never in both. */
function networkSettings(parameters: Parameters): Parameters {
  const [first, ...others] = parameters.list("NetworkInterface");
  if (first === undefined) return parameters;
  if (parameters.text("SubnetId") !== undefined || parameters.texts("SecurityGroupId").length > 0) {
    throw new Ec2Error(
      "InvalidParameterCombination",
      "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request",
    );
  }
  if (first.integer("DeviceIndex") === undefined)
    throw new Ec2Error("MissingParameter", "Each network interface requires a device index.");
  if (others.length > 0 || first.integer("DeviceIndex") !== 0) {
    throw new Ec2Error(
      "InvalidParameterCombination",
      "This cloud gives one network interface, with device index 0.",
    );
  }
  return first;
}

function subnetOf(id: string | undefined, zone: string | undefined, region: Region): Subnet {
  if (id !== undefined) {
    const subnet = region.subnet(id);
    if (zone === undefined || zone === subnet.zone) return subnet;
    throw new Ec2Error(
      "InvalidParameterValue",
      `Value (${zone}) for parameter availabilityZone is invalid: the subnet is in ${subnet.zone}`,
    );
  }
  if (region.defaultVpc === undefined)
    throw new Ec2Error(
      "VPCIdNotSpecified",
      "No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC.",
    );
  const found = region.networks.subnets.find(
    (subnet) => subnet.isDefaultForZone && (zone === undefined || subnet.zone === zone),
  );
  if (found === undefined)
    throw new Ec2Error("InvalidParameterValue", `Invalid availability zone: [${zone}]`);
  return found;
}

function checkGroup(id: string, subnet: Subnet, region: Region): void {
  const group = region.group(id);
  if (group.vpcId === subnet.vpcId) return;
  throw new Ec2Error(
    "InvalidParameter",
    `Security group ${id} and subnet ${subnet.id} belong to different networks.`,
  );
}
