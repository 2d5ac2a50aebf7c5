import { endText, nodesText } from "../../system/amounts.ts";
import { countsText, nodeCount } from "../../model/cluster-record.ts";
import type { Work } from "../../system/runtime.ts";
import { version } from "../../version.ts";
import type { CreationFolder, CreationRequest, CreationSummary } from "../contract.ts";
import { assertReadable } from "../shared/foreign-resource.ts";
import { assertCgroups1, cgroups1Advice } from "../shared/machine-errors.ts";
import { optionName } from "../../references.ts";
import { normalizeCidr } from "./admin-cidrs.ts";
import { type CloudApi, collectPages, type Calls } from "./api/api.ts";
import { cgroupVersionOf, cgroups1Distributions } from "./launch/distributions.ts";
import { type LaunchImage, findImage } from "./launch/images.ts";
import { assertFits, describeInstanceType, notOffered } from "./launch/instance-types.ts";
import type { LaunchLedger } from "./launch/launch.ts";
import { metadataText } from "./launch/look-at-machines.ts";
import {
  type GroupRequest,
  type LaunchSubnet,
  checkAddress,
  findSubnets,
} from "./launch/network.ts";
import { lifetimeMs, costText, maximumCost } from "./lifetime.ts";
import type { CloudOptions } from "./options.ts";
import type { RegionFolder } from "./records.ts";
import { groupName } from "./tags.ts";
import { ClusterError } from "../../errors.ts";

export interface ResolvedCreation {
  readonly image: LaunchImage;
  /** Tried in this order; never empty. */
  readonly subnets: readonly LaunchSubnet[];
  readonly cidrs: readonly string[];
}

/** Looks up the image, the subnets and this machine's address concurrently. Creates nothing. */
export async function resolveCreation(
  work: Pick<Work, "environment" | "progress" | "signal">,
  api: CloudApi,
  request: Pick<CreationRequest<CloudOptions>, "distribution" | "options" | "needsCgroups1">,
): Promise<ResolvedCreation> {
  const { adminCidrs, image, instanceType, subnetId } = request.options;
  assertCgroups1(request.needsCgroups1, {
    name: request.distribution,
    // The cgroup version of a user's own image is known only once a node runs.
    cgroupVersion: image === undefined ? cgroupVersionOf(request.distribution) : undefined,
    advice: cgroups1Advice(cgroups1Distributions),
  });
  const [type, found, subnets, cidrs] = await Promise.all([
    describeInstanceType(work, api, instanceType),
    findImage(api, request.distribution, image, work.signal),
    findSubnets(api, subnetId, work.signal),
    adminCidrs.length > 0 ? adminCidrs : checkAddress(work).then((address) => [address]),
  ]);
  assertFits(found, type);
  return { image: found, subnets, cidrs: cidrs.map(normalizeCidr) };
}

export interface CloudPlan {
  readonly api: CloudApi;
  readonly regionFolder: RegionFolder;
  readonly request: CreationRequest<CloudOptions>;
  readonly resolved: ResolvedCreation;
}

/** Everything requested so far, which is all that a rollback needs. */
export interface RequestedResources {
  readonly folder: CreationFolder;
  readonly expiresAt: Date;
  readonly group: GroupRequest;
  /** Undefined: requested, but the answer isn't known. */
  groupId: string | undefined;
  readonly launches: LaunchLedger;
  launchedMs: number | undefined;
  /** Machines that the API was asked to terminate. */
  ended: readonly string[];
}

/** Returns the state of a creation that has requested nothing yet. Throws if no command could read its tags back. */
export function newRequestedResources(
  { api, request, resolved }: CloudPlan,
  { folder, vpcId }: { readonly folder: CreationFolder; readonly vpcId: string },
): RequestedResources {
  const { clusterId, options } = request;
  // In whole seconds and by the API's clock, because this machine's clock may be wrong.
  const expiresAt = new Date(Math.floor((api.now() + lifetimeMs) / 1000) * 1000);
  const tags = {
    clusterId,
    creationId: folder.creationId,
    counts: countsText(request.counts),
    variant: request.variant,
    ...(request.webUi !== undefined && { webUi: request.webUi }),
    ...(request.platform !== undefined && { platform: request.platform }),
    distribution: options.image === undefined ? request.distribution : `image ${options.image.id}`,
    sshUser: resolved.image.user,
    expiresAt: expiresAt.toISOString(),
    createdBy: version,
  };
  assertReadable(tags);
  const group = { clusterId, vpcId, tags };
  return {
    folder,
    expiresAt,
    group,
    groupId: undefined,
    launches: new Map(),
    launchedMs: undefined,
    ended: [],
  };
}

export function describePlan(
  api: CloudApi,
  request: CreationRequest<CloudOptions>,
  resolved: ResolvedCreation,
) {
  const { counts, options, clusterId } = request;
  const machines = nodeCount(counts);
  const ports = [22, ...request.openPorts];
  const expiresAt = new Date(api.now() + lifetimeMs);
  const { image, subnets, cidrs } = resolved;
  const tags = options.customTags.map(({ key, value }) => `${key}=${value}`);
  const cost = maximumCost(options.instanceType, machines);
  return {
    counts,
    lines: [
      ["Cluster", clusterId],
      ["Region", api.region],
      ["Credentials", api.credentialSource],
      ["Image", `${image.id} (${image.name}), user ${image.user}`],
      ["Instance metadata", metadataText(image)],
      ["Machines", `${machines} × ${options.instanceType}: ${nodesText(counts)}`],
      ["Subnets", subnets.map((subnet) => `${subnet.id} (${subnet.zone})`).join(", ")],
      [
        "Security group",
        `${groupName(clusterId)}: TCP ${ports.join(", ")} from ${cidrs.join(", ")}; any traffic between the nodes`,
      ],
      ["Custom tags", tags.length === 0 ? "none" : tags.join(", ")],
      ["Cost", costText(options.instanceType, machines)],
      ["Ends", `${endText(expiresAt, api.now())}, two hours after launch`],
    ],
    facts: {
      cluster: clusterId,
      region: api.region,
      credentialSource: api.credentialSource,
      image: { id: image.id, name: image.name, user: image.user },
      instanceMetadata: { version1: image.knowsMetadata2 ? "closed" : "until-first-login" },
      instanceType: options.instanceType,
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      subnets: subnets.map(({ id, zone }) => ({ id, zone })),
      rules: { ports, adminCidrs: cidrs },
      customTags: options.customTags,
      ...(cost !== undefined && { maximumCostDollars: cost }),
      expiresAt: expiresAt.toISOString(),
    },
  } satisfies CreationSummary;
}

export async function offeredZones(
  api: CloudApi,
  instanceType: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const Filters = [{ Name: "instance-type", Values: [instanceType] }];
  const query = { LocationType: "availability-zone", Filters } as const;
  const itemsOf = (page: Calls["DescribeInstanceTypeOfferings"]["output"]) =>
    page.InstanceTypeOfferings;
  const offerings = await collectPages(
    api,
    ["DescribeInstanceTypeOfferings", query],
    itemsOf,
    signal,
  );
  return offerings.map((offering) => offering.Location ?? "").toSorted();
}

/** Throws the error of a launch if none of the subnets' zones offers the instance type. */
export async function assertOffered(
  api: CloudApi,
  {
    instanceType,
    subnets,
  }: { readonly instanceType: string; readonly subnets: readonly LaunchSubnet[] },
  signal: AbortSignal,
): Promise<void> {
  const zones = await offeredZones(api, instanceType, signal);
  if (subnets.some(({ zone }) => zones.includes(zone))) return;
  if (zones.length === 0) throw notOffered(api, instanceType);
  const message = `${instanceType} is offered in ${zones.join(", ")}, where no subnet of the network is.`;
  throw new ClusterError("capacity-lacking", message, {
    hint: `Choose another ${optionName("instanceType")}, or a ${optionName("subnetId")} in one of these zones.`,
    facts: { instanceType, region: api.region, zones },
  });
}
