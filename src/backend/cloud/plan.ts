import { roles } from "../../model/cluster-record.ts";
import { abandonedCreations } from "../../system/creation-folder.ts";
import type { CreationPlan, CreationRequest } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { describeInstances } from "./describe.ts";
import { lifetimeMs } from "./lifetime.ts";
import { metadataText } from "./require-metadata2.ts";
import { groupName } from "./network.ts";
import { costText, maximumCost } from "./prices.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import { assertIdIsFree } from "./taken-id.ts";

export interface Planning {
  readonly api: CloudApi;
  /** The folder of this region's creations. */
  readonly root: string;
  readonly resolve: () => Promise<ResolvedCreation>;
}

/** Resolves the creation, and makes sure that its id is free. Touches nothing. */
export async function planCreation(
  { api, root, resolve }: Planning,
  request: CreationRequest<CloudOptions>,
  signal: AbortSignal,
): Promise<CreationPlan> {
  const { clusterId } = request;
  const [resolved, instances, abandoned] = await Promise.all([
    resolve(),
    describeInstances(api, { clusterId }, signal),
    abandonedCreations(root, clusterId),
  ]);
  const leaving = abandoned.map(({ creation }) => creation.creationId);
  assertIdIsFree({ instances }, { clusterId, region: api.region, nowMs: api.now(), leaving });
  return describePlan(api, request, resolved);
}

/** What a creation would make, for people and as data. */
function describePlan(api: CloudApi, request: CreationRequest<CloudOptions>, resolved: ResolvedCreation): CreationPlan {
  const { counts, creation, clusterId } = request;
  const machines = roles.reduce((sum, role) => sum + counts[role], 0);
  const ports = [22, ...request.openPorts];
  const expiresAt = new Date(api.now() + lifetimeMs);
  const { image, subnets, cidrs } = resolved;
  const tags = creation.customTags.map(({ key, value }) => `${key}=${value}`);
  const cost = maximumCost(creation.instanceType, machines);
  return {
    lines: [
      ["Cluster", clusterId],
      ["Region", api.region],
      ["Credentials", api.credentialSource],
      ["Image", `${image.id} (${image.name}), user ${image.user}`],
      ["Instance metadata", metadataText(image)],
      [
        "Machines",
        `${machines} × ${creation.instanceType}: ${roles.map((role) => `${counts[role]} ${role}`).join(", ")}`,
      ],
      ["Subnets", subnets.map((subnet) => `${subnet.id} (${subnet.zone})`).join(", ")],
      [
        "Security group",
        `${groupName(clusterId)}: TCP ${ports.join(", ")} from ${cidrs.join(", ")}; all among the nodes`,
      ],
      ["Custom tags", tags.length === 0 ? "none" : tags.join(", ")],
      ["Cost", costText(creation.instanceType, machines)],
      ["End of life", `${expiresAt.toISOString()}, two hours after launch`],
    ],
    facts: {
      cluster: clusterId,
      region: api.region,
      credentialSource: api.credentialSource,
      image: { id: image.id, name: image.name, user: image.user },
      instanceMetadata: { version1: image.knowsMetadata2 ? "closed" : "until-first-login" },
      instanceType: creation.instanceType,
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      subnets: subnets.map(({ id, zone }) => ({ id, zone })),
      rules: { ports, adminCidrs: cidrs },
      customTags: creation.customTags,
      ...(cost !== undefined && { maximumCostDollars: cost }),
      expiresAt: expiresAt.toISOString(),
    },
  };
}
