import type { Action } from "./action.ts";
import { instancesById } from "./describe-instances.ts";
import { stateXml } from "./instance-xml.ts";

/** Terminates all or none: an unknown id makes the whole call fail. A terminated instance may be terminated again. */
export const terminateInstances: Action = {
  name: "TerminateInstances",
  parameters: { "InstanceId.N": "text", DryRun: "boolean" },
  required: ["InstanceId"],
  run: (request) => {
    const instances = instancesById(request, [...new Set(request.parameters.texts("InstanceId"))]);
    request.passDryRun();
    return {
      instancesSet: instances.map((instance) => {
        const previous = instance.state;
        request.cloud.lifecycle.terminate(instance);
        return {
          instanceId: instance.id,
          currentState: stateXml(instance.state),
          previousState: stateXml(previous),
        };
      }),
    };
  },
};
