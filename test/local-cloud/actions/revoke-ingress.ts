import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { IngressRule } from "../state/region.ts";
import type { Action } from "./action.ts";
import { readRules, ruleParameters } from "./authorize-ingress.ts";

/** If one of the rules doesn't exist, removes none. */
export const revokeSecurityGroupIngress: Action = {
  name: "RevokeSecurityGroupIngress",
  parameters: ruleParameters,
  required: ["GroupId"],
  run: ({ parameters, region, passDryRun }) => {
    const group = region.group(parameters.requiredText("GroupId"));
    const revoked = new Set(
      parameters.list("IpPermissions").flatMap((each) => readRules(each, region).map(keyOf)),
    );
    const present = new Set(group.rules.map(keyOf));
    if (revoked.size === 0)
      throw new Ec2Error(
        "MissingParameter",
        "Either 'ipPermissions' or 'securityGroupRuleIds' should be provided.",
      );
    if (!revoked.isSubsetOf(present)) {
      throw new Ec2Error(
        "InvalidPermission.NotFound",
        "The specified rule does not exist in this security group.",
      );
    }
    passDryRun();
    const kept = group.rules.filter((rule) => !revoked.has(keyOf(rule)));
    group.rules.splice(0, group.rules.length, ...kept);
    return { return: true };
  },
};

/** A rule's description is not part of its identity. */
const keyOf = ({ protocol, fromPort, toPort, source }: IngressRule): string =>
  JSON.stringify([protocol, fromPort, toPort, source]);
