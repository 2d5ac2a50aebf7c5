import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { Action } from "./action.ts";
import { instancesById } from "./describe-instances.ts";

const maximumBytes = 64 * 1024;

export const getConsoleOutput: Action = {
  name: "GetConsoleOutput",
  parameters: { InstanceId: "text", Latest: "boolean", DryRun: "boolean" },
  required: ["InstanceId"],
  run: async (request) => {
    const [instance] = instancesById(request, [request.parameters.requiredText("InstanceId")]);
    if (
      request.parameters.boolean("Latest") === true &&
      instance!.launch.type.hypervisor !== "nitro"
    ) {
      throw new Ec2Error(
        "UnsupportedOperation",
        "This instance type does not support retrieving the latest console logs.",
      );
    }
    request.passDryRun();
    const text = await request.cloud.lifecycle.console(instance!.id);
    const output = Buffer.from(text).subarray(-maximumBytes).toString("base64");
    return {
      instanceId: instance!.id,
      timestamp: request.cloud.clock.now(),
      output: output === "" ? undefined : output,
    };
  },
};
