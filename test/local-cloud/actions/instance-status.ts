import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { XmlObject } from "../endpoint/xml.ts";
import { type Instance, isAlive } from "../state/instance.ts";
import type { Action } from "./action.ts";
import { instancesById, visibleInstances } from "./describe-instances.ts";
import { stateXml } from "./instance-xml.ts";

/** Without `IncludeAllInstances`, only running instances have a status. */
export const describeInstanceStatus: Action = {
  name: "DescribeInstanceStatus",
  parameters: {
    ...filterParameters,
    ...pagingParameters,
    "InstanceId.N": "text",
    IncludeAllInstances: "boolean",
    DryRun: "boolean",
  },
  required: [],
  run: (request) => {
    const { parameters, passDryRun } = request;
    const ids = parameters.texts("InstanceId");
    const asked = ids.length === 0 ? visibleInstances(request) : instancesById(request, ids);
    const isShown =
      parameters.boolean("IncludeAllInstances") === true
        ? isAlive
        : ({ state }: Instance) => state === "running";
    const filtered = applyFilters(
      asked.filter(isShown),
      parameters,
      {
        "availability-zone": (instance) => [instance.launch.subnet.zone],
        "instance-state-name": (instance) => [instance.state],
        "instance-status.status": (instance) => [statusOf(instance)],
        "system-status.status": (instance) => [statusOf(instance)],
      },
      () => new Map(),
    );
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 1000 });
    passDryRun();
    return { instanceStatusSet: page.items.map(statusXml), nextToken: page.nextToken };
  },
};

const statusOf = ({ state }: Instance): string => (state === "running" ? "ok" : "not-applicable");

function statusXml(instance: Instance): XmlObject {
  const status = statusOf(instance);
  const details = status === "ok" ? [{ name: "reachability", status: "passed" }] : undefined;
  return {
    instanceId: instance.id,
    availabilityZone: instance.launch.subnet.zone,
    instanceState: stateXml(instance.state),
    instanceStatus: { status, details },
    systemStatus: { status, details },
  };
}
