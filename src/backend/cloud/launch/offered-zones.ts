import { ClusterError } from "../../../errors.ts";
import { type CloudApi, collectPages } from "../api/api.ts";
import type { LaunchSubnet } from "./network.ts";

/** The zones of the region that offer this instance type. */
export async function offeredZones(
  api: CloudApi,
  instanceType: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const Filters = [{ Name: "instance-type", Values: [instanceType] }];
  const query = { LocationType: "availability-zone", Filters } as const;
  const offerings = await collectPages(async (position) => {
    const page = await api.call("DescribeInstanceTypeOfferings", { ...query, ...position }, signal);
    return { items: page.InstanceTypeOfferings, next: page.NextToken };
  });
  return offerings.map((offering) => offering.Location ?? "").toSorted();
}

/** Throws what a launch would end with if none of the subnets' zones offers the instance type. */
export async function assertOffered(
  api: CloudApi,
  { instanceType, subnets }: { readonly instanceType: string; readonly subnets: readonly LaunchSubnet[] },
  signal: AbortSignal,
): Promise<void> {
  const zones = await offeredZones(api, instanceType, signal);
  if (subnets.some(({ zone }) => zones.includes(zone))) return;
  const facts = { instanceType, region: api.region, zones };
  if (zones.length === 0) {
    throw new ClusterError("bad-usage", `\`instanceType\`: region ${api.region} does not offer ${instanceType}.`, {
      hint: "Choose an instance type that it offers, such as m6i.large, or another `region`.",
      facts,
    });
  }
  const places = `${instanceType} is offered in ${zones.join(", ")}, where no subnet of the network is.`;
  throw new ClusterError("capacity-lacking", places, {
    hint: "Choose another `instanceType`, or a `subnetId` in one of these zones.",
    facts,
  });
}
