import { roles } from "../../model/cluster-record.ts";
import type { CreationPlan, CreationRequest } from "../backend.ts";
import { nodeCount } from "../cluster-shape.ts";
import type { ContainerOptions } from "./container-options.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";

/** What a creation would make, for people and as data. */
export function describePlan(
  { clusterId, counts, creation }: CreationRequest<ContainerOptions>,
  { kind, facts, distribution, image, reach }: ResolvedCreation,
): CreationPlan {
  const source = image.containerfile === undefined ? "will be pulled" : "will be built, which takes minutes";
  return {
    lines: [
      ["Cluster", clusterId],
      ["Engine", `${kind.title} ${facts.version}, cgroups ${facts.cgroupVersion}`],
      ["Distribution", distribution],
      ["Image", `${image.name} (${image.isPresent ? "present" : source})`],
      ["Containers", `${nodeCount(counts)}: ${roles.map((role) => `${counts[role]} ${role}`).join(", ")}`],
      ["Limits", `memory ${creation.memory ?? "none"}, CPUs ${creation.cpus ?? "none"}, each`],
      ["Network", "a bridge of its own"],
      [
        "Reached at",
        reach === "direct"
          ? "the containers' own addresses"
          : "ports of 127.0.0.1, since the engine runs in a virtual machine",
      ],
      ["Volumes", creation.volumes.length === 0 ? "none" : creation.volumes.join(", ")],
      ["End of life", "none: the destroy command removes the cluster"],
    ],
    facts: {
      cluster: clusterId,
      engine: { name: kind.name, version: facts.version, cgroupVersion: facts.cgroupVersion },
      distribution,
      image: { name: image.name, isPresent: image.isPresent },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      reach,
      volumes: creation.volumes,
      ...(creation.memory !== undefined && { memory: creation.memory }),
      ...(creation.cpus !== undefined && { cpus: creation.cpus }),
    },
  };
}
