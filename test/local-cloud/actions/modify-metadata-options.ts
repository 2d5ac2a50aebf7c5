import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { Action } from "./action.ts";
import { instancesById } from "./describe-instances.ts";
import { oneOf, readHopLimit } from "./launch-specification.ts";

/** Options that the request leaves out keep their values. The response shows the new values as pending. */
export const modifyInstanceMetadataOptions: Action = {
  name: "ModifyInstanceMetadataOptions",
  parameters: {
    InstanceId: "text",
    HttpTokens: "text",
    HttpPutResponseHopLimit: "integer",
    HttpEndpoint: "text",
    InstanceMetadataTags: "text",
    DryRun: "boolean",
  },
  required: ["InstanceId"],
  run: (request) => {
    const { parameters } = request;
    const [instance] = instancesById(request, [parameters.requiredText("InstanceId")]);
    if (instance!.state === "terminated" || instance!.state === "shutting-down") {
      throw new Ec2Error(
        "IncorrectInstanceState",
        `The instance '${instance!.id}' is not in a state from which its metadata options can be modified.`,
      );
    }
    const now = instance!.metadataOptions;
    const options = {
      httpTokens: oneOf(parameters, "HttpTokens", ["optional", "required"]) ?? now.httpTokens,
      httpPutResponseHopLimit:
        readHopLimit(parameters, "HttpPutResponseHopLimit") ?? now.httpPutResponseHopLimit,
      httpEndpoint: oneOf(parameters, "HttpEndpoint", ["enabled", "disabled"]) ?? now.httpEndpoint,
      instanceMetadataTags:
        oneOf(parameters, "InstanceMetadataTags", ["enabled", "disabled"]) ??
        now.instanceMetadataTags,
    };
    request.passDryRun();
    instance!.metadataOptions = options;
    return { instanceId: instance!.id, instanceMetadataOptions: { state: "pending", ...options } };
  },
};
