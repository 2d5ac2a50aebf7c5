import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import { isAlive, type Instance } from "../state/instance.ts";
import type { Action, ActionRequest } from "./action.ts";
import { reservationsXml } from "./instance-xml.ts";
import { visibleTags } from "./visible-tags.ts";

export const describeInstances: Action = {
  name: "DescribeInstances",
  parameters: {
    ...filterParameters,
    ...pagingParameters,
    "InstanceId.N": "text",
    DryRun: "boolean",
  },
  required: [],
  run: (request) => {
    const { parameters, region, cloud, passDryRun } = request;
    const ids = parameters.texts("InstanceId");
    if (ids.length > 0 && parameters.integer("MaxResults") !== undefined) {
      throw new Ec2Error(
        "InvalidParameterCombination",
        "The parameter instancesSet cannot be used with the parameter maxResults",
      );
    }
    const asked = ids.length === 0 ? visibleInstances(request) : instancesById(request, ids);
    const filtered = applyFilters(asked, parameters, instanceFields, visibleTags);
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 1000 });
    passDryRun();
    const { groupsOnlyAtInterfaces } = cloud.behaviour.current;
    const reservationSet = reservationsXml(page.items, region, {
      hasGroups: !groupsOnlyAtInterfaces,
    });
    return { reservationSet, nextToken: page.nextToken };
  },
};

/** Returns the instances with these ids. Throws EC2's error if an id is malformed, unknown or not visible yet. */
export function instancesById(request: ActionRequest, ids: readonly string[]): readonly Instance[] {
  const malformed = ids.find((id) => !/^i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(id));
  if (malformed !== undefined)
    throw new Ec2Error("InvalidInstanceID.Malformed", `Invalid id: "${malformed}"`);
  const visible = new Map(visibleInstances(request).map((instance) => [instance.id, instance]));
  const unknown = ids.filter((id) => !visible.has(id));
  if (unknown.length > 0) {
    const text =
      unknown.length === 1 ? `ID '${unknown[0]}' does` : `IDs '${unknown.join(", ")}' do`;
    throw new Ec2Error("InvalidInstanceID.NotFound", `The instance ${text} not exist`);
  }
  return ids.map((id) => visible.get(id)!);
}

/** The instances that calls can see now. */
export function visibleInstances({ region, cloud }: ActionRequest): readonly Instance[] {
  return region.visibleInstances(cloud.clock.now(), cloud.behaviour.current.terminatedShownMs);
}

/** A terminated instance no longer has a network, so filters on the network don't match it. */
const whileAlive =
  (value: (instance: Instance) => readonly (string | undefined)[]) => (instance: Instance) =>
    isAlive(instance) ? value(instance) : [];

const instanceFields = {
  "instance-id": (instance: Instance) => [instance.id],
  "instance-state-name": (instance: Instance) => [instance.state],
  "image-id": (instance: Instance) => [instance.launch.image.id],
  "instance-type": (instance: Instance) => [instance.launch.type.name],
  "reservation-id": (instance: Instance) => [instance.reservationId],
  "owner-id": (instance: Instance) => [instance.accountId],
  "client-token": (instance: Instance) => [instance.launch.clientToken],
  "availability-zone": (instance: Instance) => [instance.launch.subnet.zone],
  "launch-index": (instance: Instance) => [String(instance.launchIndex)],
  "vpc-id": whileAlive((instance) => [instance.launch.subnet.vpcId]),
  "subnet-id": whileAlive((instance) => [instance.launch.subnet.id]),
  "instance.group-id": whileAlive((instance) => instance.launch.groupIds),
  "network-interface.group-id": whileAlive((instance) => instance.launch.groupIds),
  "private-ip-address": whileAlive((instance) => [instance.privateAddress]),
  "ip-address": whileAlive((instance) => [instance.publicAddress]),
};
