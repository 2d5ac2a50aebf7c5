import { newId } from "../catalogue/resource-id.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { IngressRule, Region, SecurityGroup } from "../state/region.ts";
import type { Action } from "./action.ts";
import {
  checkTagPolicy,
  readTagSpecifications,
  tagsXml,
  tagSpecificationParameters,
} from "./tags.ts";

const allowedName = /^[a-zA-Z0-9 ._\-:/()#,@[\]+=&;{}!$*]{1,255}$/;

export const createSecurityGroup: Action = {
  name: "CreateSecurityGroup",
  parameters: {
    GroupName: "text",
    GroupDescription: "text",
    VpcId: "text",
    DryRun: "boolean",
    ...tagSpecificationParameters,
  },
  required: ["GroupName", "GroupDescription"],
  run: ({ parameters, region, accountId, cloud, passDryRun }) => {
    const name = parameters.requiredText("GroupName");
    const description = parameters.requiredText("GroupDescription");
    checkNames(name, description);
    const vpcId = vpcOf(region, parameters.text("VpcId"));
    const tags =
      readTagSpecifications(parameters, ["security-group"]).get("security-group") ??
      new Map<string, string>();
    // The name is taken at once, even while the id is not visible yet. So a name can be used as a lock.
    if ([...region.groups.values()].some((group) => group.vpcId === vpcId && group.name === name)) {
      throw new Ec2Error(
        "InvalidGroup.Duplicate",
        `The security group '${name}' already exists for VPC '${vpcId}'`,
      );
    }
    const count = [...region.groups.values()].filter((group) => group.vpcId === vpcId).length;
    if (count >= cloud.behaviour.current.groupLimit)
      throw new Ec2Error(
        "SecurityGroupLimitExceeded",
        `The maximum number of security groups for VPC '${vpcId}' has been reached.`,
      );
    checkTagPolicy(tags, cloud.behaviour.current);
    passDryRun();
    const id = newId("sg");
    const visibleAt = Date.now() + cloud.behaviour.current.groupsVisibleAfterMs;
    region.groups.set(id, {
      id,
      name,
      description,
      vpcId,
      tags: new Map(tags),
      rules: [],
      visibleAt,
    });
    const securityGroupArn = `arn:aws:ec2:${region.name}:${accountId}:security-group/${id}`;
    return { return: true, groupId: id, tagSet: tagsXml(tags), securityGroupArn };
  },
};

export const describeSecurityGroups: Action = {
  name: "DescribeSecurityGroups",
  parameters: {
    ...filterParameters,
    ...pagingParameters,
    "GroupId.N": "text",
    "GroupName.N": "text",
    DryRun: "boolean",
  },
  required: [],
  run: ({ parameters, region, accountId, passDryRun }) => {
    const ids = parameters.texts("GroupId");
    const names = parameters.texts("GroupName");
    if (ids.length > 0 && parameters.integer("MaxResults") !== undefined) {
      throw new Ec2Error(
        "InvalidParameterCombination",
        "The parameter GroupIds cannot be used with the parameter MaxResults",
      );
    }
    const visible = [...region.groups.values()].filter((group) => group.visibleAt <= Date.now());
    const asked = ids.length === 0 ? visible : ids.map((id) => region.group(id));
    const named =
      names.length === 0 ? asked : names.map((name) => groupByName(region, asked, name));
    const filtered = applyFilters(
      named,
      parameters,
      {
        "group-id": (group) => [group.id],
        "group-name": (group) => [group.name],
        description: (group) => [group.description],
        "vpc-id": (group) => [group.vpcId],
        "owner-id": () => [accountId],
      },
      (group) => group.tags,
    );
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 1000 });
    passDryRun();
    return {
      securityGroupInfo: page.items.map((group) => groupXml(group, accountId)),
      nextToken: page.nextToken,
    };
  },
};

export const deleteSecurityGroup: Action = {
  name: "DeleteSecurityGroup",
  parameters: { GroupId: "text", DryRun: "boolean" },
  required: ["GroupId"],
  run: ({ parameters, region, passDryRun }) => {
    const group = region.group(parameters.requiredText("GroupId"));
    if (group.name === "default") {
      throw new Ec2Error(
        "CannotDelete",
        `the specified group: "${group.id}" name: "default" cannot be deleted by a user`,
      );
    }
    passDryRun();
    if (region.isGroupUsed(group.id)) {
      throw new Ec2Error("DependencyViolation", `resource ${group.id} has a dependent object`);
    }
    region.groups.delete(group.id);
    return { return: true, groupId: group.id };
  },
};

function checkNames(name: string, description: string): void {
  if (name.toLowerCase() === "default")
    throw new Ec2Error("InvalidGroup.Reserved", "The security group name 'default' is reserved");
  if (!allowedName.test(name) || /^sg-/i.test(name)) {
    throw new Ec2Error(
      "InvalidParameterValue",
      `Value (${name}) for parameter GroupName is invalid. Character sets beyond ASCII are not supported.`,
    );
  }
  if (!allowedName.test(description)) {
    throw new Ec2Error(
      "InvalidParameterValue",
      `Value (${description}) for parameter GroupDescription is invalid. Character sets beyond ASCII are not supported.`,
    );
  }
}

function vpcOf(region: Region, given: string | undefined): string {
  if (given !== undefined) return region.vpc(given).id;
  if (region.defaultVpc === undefined)
    throw new Ec2Error("VPCIdNotSpecified", "No default VPC for this user");
  return region.defaultVpc.id;
}

/** EC2 finds groups by name only in the default VPC. */
function groupByName(
  region: Region,
  groups: readonly SecurityGroup[],
  name: string,
): SecurityGroup {
  const found = groups.find(
    (group) => group.name === name && group.vpcId === region.defaultVpc?.id,
  );
  if (found === undefined)
    throw new Ec2Error(
      "InvalidGroup.NotFound",
      `The security group '${name}' does not exist in default VPC`,
    );
  return found;
}

function groupXml(group: SecurityGroup, accountId: string) {
  return {
    ownerId: accountId,
    groupId: group.id,
    groupName: group.name,
    groupDescription: group.description,
    vpcId: group.vpcId,
    ipPermissions: group.rules.map((rule) => ruleXml(rule, accountId)),
    ipPermissionsEgress: [
      {
        ipProtocol: "-1",
        groups: [],
        ipRanges: [{ cidrIp: "0.0.0.0/0" }],
        ipv6Ranges: [],
        prefixListIds: [],
      },
    ],
    tagSet: tagsXml(group.tags),
  };
}

function ruleXml(
  { protocol, fromPort, toPort, source, description }: IngressRule,
  accountId: string,
) {
  return {
    ipProtocol: protocol,
    fromPort,
    toPort,
    groups:
      "groupId" in source ? [{ groupId: source.groupId, userId: accountId, description }] : [],
    ipRanges: "cidr" in source ? [{ cidrIp: source.cidr, description }] : [],
    ipv6Ranges: "cidrIpv6" in source ? [{ cidrIpv6: source.cidrIpv6, description }] : [],
    prefixListIds: [],
  };
}
