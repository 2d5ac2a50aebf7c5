import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { Instance } from "../state/instance.ts";
import type { Action, ActionRequest } from "./action.ts";
import { instancesById } from "./describe-instances.ts";
import { stateXml } from "./instance-xml.ts";

const parameters = { "InstanceId.N": "text", DryRun: "boolean" } as const;

/** Stops all or none, also those that an own shutdown would terminate. They can't be started again here. */
export const stopInstances: Action = {
  name: "StopInstances",
  parameters: { ...parameters, Force: "boolean", Hibernate: "boolean" },
  required: ["InstanceId"],
  run: (request) => {
    const instances = changeable(request, ["running", "stopping", "stopped"], "stopped");
    request.passDryRun();
    return {
      instancesSet: instances.map((instance) => {
        const previous = instance.state;
        request.cloud.lifecycle.stop(instance);
        return {
          instanceId: instance.id,
          currentState: stateXml(instance.state),
          previousState: stateXml(previous),
        };
      }),
    };
  },
};

export const rebootInstances: Action = {
  name: "RebootInstances",
  parameters,
  required: ["InstanceId"],
  run: (request) => {
    const instances = changeable(request, ["running"], "rebooted");
    request.passDryRun();
    for (const instance of instances) request.cloud.lifecycle.reboot(instance);
    return { return: true };
  },
};

function changeable(
  request: ActionRequest,
  states: readonly Instance["state"][],
  change: string,
): readonly Instance[] {
  const instances = instancesById(request, [...new Set(request.parameters.texts("InstanceId"))]);
  const other = instances.find(({ state }) => !states.includes(state));
  if (other === undefined) return instances;
  throw new Ec2Error(
    "IncorrectInstanceState",
    `The instance '${other.id}' is not in a state from which it can be ${change}.`,
  );
}
