import { instanceTypes, isOffered, type InstanceType } from "../catalogue/instance-types.ts";
import { regions } from "../catalogue/regions.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { Action } from "./action.ts";

const noTags = () => new Map<string, string>();

export const describeRegions: Action = {
  name: "DescribeRegions",
  parameters: {
    ...filterParameters,
    "RegionName.N": "text",
    AllRegions: "boolean",
    DryRun: "boolean",
  },
  required: [],
  run: ({ parameters, passDryRun }) => {
    const names = parameters.texts("RegionName");
    const unknown = names.find((name) => !regions.some((region) => region.name === name));
    if (unknown !== undefined) throw invalid(`Invalid region provided: ${unknown}`);
    const shown = regions.filter(
      (region) =>
        (names.length === 0 || names.includes(region.name)) &&
        (parameters.boolean("AllRegions") === true || region.optInStatus !== "not-opted-in"),
    );
    const filtered = applyFilters(
      shown,
      parameters,
      {
        "region-name": (region) => [region.name],
        "opt-in-status": (region) => [region.optInStatus],
        endpoint: (region) => [endpointOf(region.name)],
      },
      noTags,
    );
    passDryRun();
    return {
      regionInfo: filtered.map(({ name, optInStatus }) => ({
        regionName: name,
        regionEndpoint: endpointOf(name),
        optInStatus,
      })),
    };
  },
};

export const describeAvailabilityZones: Action = {
  name: "DescribeAvailabilityZones",
  parameters: {
    ...filterParameters,
    "ZoneName.N": "text",
    "ZoneId.N": "text",
    AllAvailabilityZones: "boolean",
    DryRun: "boolean",
  },
  required: [],
  run: ({ parameters, region, passDryRun }) => {
    const names = parameters.texts("ZoneName");
    const ids = parameters.texts("ZoneId");
    const zones = region.description.zones.map((name) => ({ name, id: zoneId(name) }));
    const unknown = names.find((name) => !zones.some((zone) => zone.name === name));
    if (unknown !== undefined) throw invalid(`Invalid availability zone: [${unknown}]`);
    const asked = zones.filter(
      ({ name, id }) =>
        (names.length === 0 || names.includes(name)) && (ids.length === 0 || ids.includes(id)),
    );
    const filtered = applyFilters(
      asked,
      parameters,
      {
        "zone-name": ({ name }) => [name],
        "zone-id": ({ id }) => [id],
        "region-name": () => [region.name],
        state: () => ["available"],
        "zone-type": () => ["availability-zone"],
        "opt-in-status": () => ["opt-in-not-required"],
      },
      noTags,
    );
    passDryRun();
    return {
      availabilityZoneInfo: filtered.map(({ name, id }) => ({
        zoneName: name,
        zoneId: id,
        zoneState: "available",
        regionName: region.name,
        zoneType: "availability-zone",
        optInStatus: "opt-in-not-required",
      })),
    };
  },
};

export const describeInstanceTypes: Action = {
  name: "DescribeInstanceTypes",
  parameters: {
    ...filterParameters,
    ...pagingParameters,
    "InstanceType.N": "text",
    DryRun: "boolean",
  },
  required: [],
  run: ({ parameters, passDryRun }) => {
    const names = parameters.texts("InstanceType");
    const unknown = names.filter((name) => !instanceTypes.some((type) => type.name === name));
    if (unknown.length > 0) {
      const list = unknown.join(", ");
      throw new Ec2Error(
        "InvalidInstanceType",
        `The following supplied instance types do not exist: [${list}]`,
      );
    }
    const asked = instanceTypes.filter((type) => names.length === 0 || names.includes(type.name));
    const filtered = applyFilters(
      asked,
      parameters,
      {
        "instance-type": (type) => [type.name],
        "processor-info.supported-architecture": (type) => [type.architecture],
        hypervisor: (type) => [type.hypervisor],
        "current-generation": () => ["true"],
      },
      noTags,
    );
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 100 });
    passDryRun();
    return { instanceTypeSet: page.items.map(instanceTypeXml), nextToken: page.nextToken };
  },
};

export const describeInstanceTypeOfferings: Action = {
  name: "DescribeInstanceTypeOfferings",
  parameters: { ...filterParameters, ...pagingParameters, LocationType: "text", DryRun: "boolean" },
  required: [],
  run: ({ parameters, region, passDryRun }) => {
    const locationType = parameters.text("LocationType") ?? "region";
    const zones = region.description.zones;
    const offerings = instanceTypes.flatMap((type) =>
      locationsOf(locationType, region.name, zones)
        .filter((location) => location.zone === undefined || isOffered(type, location.zone, zones))
        .map((location) => ({ instanceType: type.name, locationType, location: location.name })),
    );
    const filtered = applyFilters(
      offerings,
      parameters,
      {
        "instance-type": (offering) => [offering.instanceType],
        location: (offering) => [offering.location],
      },
      noTags,
    );
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 1000 });
    passDryRun();
    return { instanceTypeOfferingSet: page.items, nextToken: page.nextToken };
  },
};

interface Location {
  readonly name: string;
  readonly zone: string | undefined;
}

function locationsOf(type: string, region: string, zones: readonly string[]): readonly Location[] {
  switch (type) {
    case "region":
      return [{ name: region, zone: undefined }];
    case "availability-zone":
      return zones.map((zone) => ({ name: zone, zone }));
    case "availability-zone-id":
      return zones.map((zone) => ({ name: zoneId(zone), zone }));
    default:
      throw invalid(`Invalid value '${type}' for LocationType.`);
  }
}

function instanceTypeXml(type: InstanceType) {
  return {
    instanceType: type.name,
    currentGeneration: true,
    bareMetal: false,
    hypervisor: type.hypervisor,
    supportedRootDeviceTypes: ["ebs"],
    supportedVirtualizationTypes: ["hvm"],
    processorInfo: { supportedArchitectures: [type.architecture] },
    vCpuInfo: {
      defaultVCpus: type.vcpus,
      defaultCores: Math.max(1, type.vcpus / 2),
      defaultThreadsPerCore: 2,
    },
    memoryInfo: { sizeInMiB: type.memoryMiB },
    instanceStorageSupported: false,
  };
}

/** `us-west-2a` → `usw2-az1`. In EC2, each account has its own assignment of letters. */
export function zoneId(zone: string): string {
  const [area, direction, rest] = zone.split("-") as [string, string, string];
  const short = direction
    .replace("south", "s")
    .replace("north", "n")
    .replace("central", "c")
    .replace("east", "e")
    .replace("west", "w");
  return `${area}${short}${rest.slice(0, -1)}-az${rest.charCodeAt(rest.length - 1) - 96}`;
}

function endpointOf(region: string): string {
  return `ec2.${region}.amazonaws.com`;
}

function invalid(message: string): Ec2Error {
  return new Ec2Error("InvalidParameterValue", message);
}
