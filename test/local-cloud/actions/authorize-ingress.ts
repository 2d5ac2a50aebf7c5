import { isIPv4, isIPv6 } from "node:net";
import { newId } from "../catalogue/resource-id.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { ParameterDeclaration, Parameters } from "../endpoint/parameters.ts";
import type { IngressRule, Region } from "../state/region.ts";
import type { Action } from "./action.ts";
import { readTagSpecifications, tagSpecificationParameters } from "./tags.ts";

const maximumRules = 60;

export const ruleParameters = {
  GroupId: "text",
  DryRun: "boolean",
  "IpPermissions.N.IpProtocol": "text",
  "IpPermissions.N.FromPort": "integer",
  "IpPermissions.N.ToPort": "integer",
  "IpPermissions.N.IpRanges.N.CidrIp": "text",
  "IpPermissions.N.IpRanges.N.Description": "text",
  "IpPermissions.N.Ipv6Ranges.N.CidrIpv6": "text",
  "IpPermissions.N.Ipv6Ranges.N.Description": "text",
  "IpPermissions.N.Groups.N.GroupId": "text",
  "IpPermissions.N.Groups.N.Description": "text",
  "IpPermissions.N.Groups.N.UserId": "text",
} as const satisfies ParameterDeclaration;

export const authorizeSecurityGroupIngress: Action = {
  name: "AuthorizeSecurityGroupIngress",
  parameters: {
    ...ruleParameters,
    ...tagSpecificationParameters,
  },
  required: ["GroupId"],
  run: ({ parameters, region, accountId, passDryRun }) => {
    const group = region.group(parameters.requiredText("GroupId"));
    readTagSpecifications(parameters, ["security-group-rule"]);
    const rules = parameters
      .list("IpPermissions")
      .flatMap((permission) => readRules(permission, region));
    if (rules.length === 0)
      throw new Ec2Error(
        "MissingParameter",
        "Either 'ipPermissions' or 'securityGroupRules' should be provided.",
      );
    refuseDuplicates([...group.rules, ...rules]);
    if (group.rules.length + rules.length > maximumRules) {
      throw new Ec2Error(
        "RulesPerSecurityGroupLimitExceeded",
        "The maximum number of rules per security group has been reached.",
      );
    }
    passDryRun();
    group.rules.push(...rules);
    return {
      return: true,
      securityGroupRuleSet: rules.map((rule) => ({
        securityGroupRuleId: rule.id,
        groupId: group.id,
        groupOwnerId: accountId,
        isEgress: false,
        ipProtocol: rule.protocol,
        fromPort: rule.fromPort,
        toPort: rule.toPort,
        cidrIpv4: "cidr" in rule.source ? rule.source.cidr : undefined,
        cidrIpv6: "cidrIpv6" in rule.source ? rule.source.cidrIpv6 : undefined,
        description: rule.description,
      })),
    };
  },
};

/** Returns one rule for each source of the permission. */
export function readRules(permission: Parameters, region: Region): readonly IngressRule[] {
  const protocol = permission.requiredText("IpProtocol");
  const fromPort = permission.integer("FromPort");
  const toPort = permission.integer("ToPort");
  checkPorts(protocol, fromPort, toPort);
  const sources = readSources(permission, region);
  if (sources.length === 0)
    throw invalid(
      "Missing source specification: include source security group or CIDR information",
    );
  return sources.map((source) => ({ id: newId("sgr"), protocol, fromPort, toPort, ...source }));
}

function readSources(
  permission: Parameters,
  region: Region,
): readonly Pick<IngressRule, "source" | "description">[] {
  const description = (range: Parameters) => range.text("Description");
  return [
    ...permission.list("IpRanges").map((range) => ({
      source: { cidr: checkedCidr(range.requiredText("CidrIp"), isIPv4, 32) },
      description: description(range),
    })),
    ...permission.list("Ipv6Ranges").map((range) => ({
      source: { cidrIpv6: checkedCidr(range.requiredText("CidrIpv6"), isIPv6, 128) },
      description: description(range),
    })),
    ...permission.list("Groups").map((group) => ({
      source: { groupId: region.group(group.requiredText("GroupId")).id },
      description: description(group),
    })),
  ];
}

function checkPorts(
  protocol: string,
  fromPort: number | undefined,
  toPort: number | undefined,
): void {
  if (protocol === "-1" || protocol === "icmp" || protocol === "icmpv6") return;
  if (protocol !== "tcp" && protocol !== "udp")
    throw invalid(`Invalid value '${protocol}' for IP protocol. Unknown protocol.`);
  if (fromPort === undefined || toPort === undefined) {
    throw invalid(
      "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.",
    );
  }
  if (fromPort < 0 || toPort > 65_535 || fromPort > toPort)
    throw invalid(`Invalid TCP/UDP port range (${fromPort}:${toPort})`);
}

function checkedCidr(
  cidr: string,
  isAddress: (text: string) => boolean,
  maximumBits: number,
): string {
  const [address, bits, ...rest] = cidr.split("/");
  const isGood =
    isAddress(address!) &&
    /^\d{1,3}$/.test(bits ?? "") &&
    Number(bits) <= maximumBits &&
    rest.length === 0;
  if (!isGood) throw invalid(`CIDR block ${cidr} is malformed`);
  return cidr;
}

function refuseDuplicates(rules: readonly IngressRule[]): void {
  const seen = new Set<string>();
  for (const { protocol, fromPort, toPort, source } of rules) {
    const key = JSON.stringify([protocol, fromPort, toPort, source]);
    if (seen.has(key))
      throw new Ec2Error(
        "InvalidPermission.Duplicate",
        `the specified rule "${key}" already exists`,
      );
    seen.add(key);
  }
}

function invalid(message: string): Ec2Error {
  return new Ec2Error("InvalidParameterValue", message);
}
