import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { XmlObject } from "../endpoint/xml.ts";
import { type Instance, isAlive } from "../state/instance.ts";
import type { Region } from "../state/region.ts";
import type { Action } from "./action.ts";
import { visibleInstances } from "./describe-instances.ts";
import { interfaceId, interfaceXml, publicAddress } from "./instance-xml.ts";

/** Each instance has one interface, which lives as long as the instance. */
export const describeNetworkInterfaces: Action = {
  name: "DescribeNetworkInterfaces",
  parameters: {
    ...filterParameters,
    ...pagingParameters,
    "NetworkInterfaceId.N": "text",
    DryRun: "boolean",
  },
  required: [],
  run: (request) => {
    const { parameters, region, passDryRun } = request;
    const ids = parameters.texts("NetworkInterfaceId");
    const all = visibleInstances(request).filter(isAlive);
    const unknown = ids.find((id) => !all.some((instance) => interfaceId(instance) === id));
    if (unknown !== undefined)
      throw new Ec2Error(
        "InvalidNetworkInterfaceID.NotFound",
        `The networkInterface ID '${unknown}' does not exist`,
      );
    const asked = all.filter((instance) => ids.length === 0 || ids.includes(interfaceId(instance)));
    const filtered = applyFilters(asked, parameters, interfaceFields, () => new Map());
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 1000 });
    passDryRun();
    return {
      networkInterfaceSet: page.items.map((instance) => describedInterface(instance, region)),
      nextToken: page.nextToken,
    };
  },
};

const interfaceFields = {
  "network-interface-id": (instance: Instance) => [interfaceId(instance)],
  "attachment.instance-id": (instance: Instance) => [instance.id],
  "attachment.status": () => ["attached"],
  "group-id": (instance: Instance) => instance.launch.groupIds,
  "subnet-id": (instance: Instance) => [instance.launch.subnet.id],
  "vpc-id": (instance: Instance) => [instance.launch.subnet.vpcId],
  "availability-zone": (instance: Instance) => [instance.launch.subnet.zone],
  "private-ip-address": (instance: Instance) => [instance.privateAddress],
  "association.public-ip": (instance: Instance) => [publicAddress(instance)],
  status: () => ["in-use"],
};

function describedInterface(instance: Instance, region: Region): XmlObject {
  const { attachment, ...shared } = interfaceXml(instance, region);
  const address = publicAddress(instance);
  return {
    ...shared,
    availabilityZone: instance.launch.subnet.zone,
    description: "",
    interfaceType: "interface",
    ownerId: instance.accountId,
    requesterManaged: false,
    sourceDestCheck: true,
    attachment: { ...attachment, instanceId: instance.id, instanceOwnerId: instance.accountId },
    association: address === undefined ? undefined : { publicIp: address, ipOwnerId: "amazon" },
    privateIpAddressesSet: [{ privateIpAddress: instance.privateAddress, primary: true }],
  };
}
