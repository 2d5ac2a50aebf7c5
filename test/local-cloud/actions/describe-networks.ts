import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { Action } from "./action.ts";
import { zoneId } from "./describe-places.ts";

const limits = { minimum: 5, maximum: 1000 };
const noTags = () => new Map<string, string>();

export const describeVpcs: Action = {
  name: "DescribeVpcs",
  parameters: { ...filterParameters, ...pagingParameters, "VpcId.N": "text", DryRun: "boolean" },
  required: [],
  run: ({ parameters, region, accountId, passDryRun }) => {
    const ids = parameters.texts("VpcId");
    const asked = ids.length === 0 ? region.networks.vpcs : ids.map((id) => region.vpc(id));
    const filtered = applyFilters(
      asked,
      parameters,
      {
        "vpc-id": (vpc) => [vpc.id],
        "is-default": (vpc) => [String(vpc.isDefault)],
        isDefault: (vpc) => [String(vpc.isDefault)],
        cidr: (vpc) => [vpc.cidr],
        state: () => ["available"],
        "owner-id": () => [accountId],
      },
      noTags,
    );
    const page = pageOf(filtered, parameters, limits);
    passDryRun();
    return {
      vpcSet: page.items.map((vpc) => ({
        vpcId: vpc.id,
        ownerId: accountId,
        state: "available",
        cidrBlock: vpc.cidr,
        isDefault: vpc.isDefault,
        instanceTenancy: "default",
      })),
      nextToken: page.nextToken,
    };
  },
};

export const describeSubnets: Action = {
  name: "DescribeSubnets",
  parameters: { ...filterParameters, ...pagingParameters, "SubnetId.N": "text", DryRun: "boolean" },
  required: [],
  run: ({ parameters, region, accountId, cloud, passDryRun }) => {
    const ids = parameters.texts("SubnetId");
    if (ids.length > 0 && parameters.integer("MaxResults") !== undefined) {
      throw new Ec2Error(
        "InvalidParameterCombination",
        "The parameter subnetIds cannot be used with the parameter maxResults",
      );
    }
    const asked = ids.length === 0 ? region.networks.subnets : ids.map((id) => region.subnet(id));
    const filtered = applyFilters(
      asked,
      parameters,
      {
        "subnet-id": (subnet) => [subnet.id],
        "vpc-id": (subnet) => [subnet.vpcId],
        "availability-zone": (subnet) => [subnet.zone],
        "availability-zone-id": (subnet) => [zoneId(subnet.zone)],
        "default-for-az": (subnet) => [String(subnet.isDefaultForZone)],
        defaultForAz: (subnet) => [String(subnet.isDefaultForZone)],
        "map-public-ip-on-launch": (subnet) => [String(subnet.givesPublicAddresses)],
        "cidr-block": (subnet) => [subnet.cidr],
        "owner-id": () => [accountId],
        state: () => ["available"],
      },
      noTags,
    );
    const page = pageOf(filtered, parameters, limits);
    passDryRun();
    return {
      subnetSet: page.items.map((subnet) => ({
        subnetId: subnet.id,
        vpcId: subnet.vpcId,
        ownerId: accountId,
        state: "available",
        cidrBlock: subnet.cidr,
        availableIpAddressCount: cloud.addresses.free(subnet.cidr),
        availabilityZone: subnet.zone,
        availabilityZoneId: zoneId(subnet.zone),
        defaultForAz: subnet.isDefaultForZone,
        mapPublicIpOnLaunch: subnet.givesPublicAddresses,
      })),
      nextToken: page.nextToken,
    };
  },
};
