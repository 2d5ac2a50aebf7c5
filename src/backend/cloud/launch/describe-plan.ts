import type { CreationRequest, CreationSummary } from "../../contract.ts";
import { nodeCount, roles } from "../../../model/cluster-record.ts";
import type { CloudApi } from "../api/api.ts";
import type { CloudOptions } from "../options.ts";
import { lifetimeMs } from "./lifetime.ts";
import { metadataText } from "./require-metadata2.ts";
import { groupName } from "../records/tags.ts";
import { costText, maximumCost } from "./prices.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";

/** Describes what a creation would create, for people and as data. */
export function describePlan(
  api: CloudApi,
  request: CreationRequest<CloudOptions>,
  resolved: ResolvedCreation,
): CreationSummary {
  const { counts, options, clusterId } = request;
  const machines = nodeCount(counts);
  const ports = [22, ...request.openPorts];
  const expiresAt = new Date(api.now() + lifetimeMs);
  const { image, subnets, cidrs } = resolved;
  const tags = options.customTags.map(({ key, value }) => `${key}=${value}`);
  const cost = maximumCost(options.instanceType, machines);
  return {
    lines: [
      ["Cluster", clusterId],
      ["Region", api.region],
      ["Credentials", api.credentialSource],
      ["Image", `${image.id} (${image.name}), user ${image.user}`],
      ["Instance metadata", metadataText(image)],
      [
        "Machines",
        `${machines} × ${options.instanceType}: ${roles.map((role) => `${counts[role]} ${role}`).join(", ")}`,
      ],
      ["Subnets", subnets.map((subnet) => `${subnet.id} (${subnet.zone})`).join(", ")],
      [
        "Security group",
        `${groupName(clusterId)}: TCP ${ports.join(", ")} from ${cidrs.join(", ")}; any traffic between the nodes`,
      ],
      ["Custom tags", tags.length === 0 ? "none" : tags.join(", ")],
      ["Cost", costText(options.instanceType, machines)],
      ["Ends", `${expiresAt.toISOString()}, two hours after launch`],
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
  };
}
