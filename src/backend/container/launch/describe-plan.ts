import type { CreationRequest, CreationSummary } from "../../contract.ts";
import { nodeCount, roles } from "../../../model/cluster-record.ts";
import type { ContainerOptions } from "../options.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";

/** Describes what a creation would create, for people and as data. */
export function describePlan(
  { clusterId, counts, options }: CreationRequest<ContainerOptions>,
  { kind, facts, distribution, image, reach }: ResolvedCreation,
): CreationSummary {
  const source = image.containerfile === undefined ? "will be pulled" : "will be built, which takes minutes";
  return {
    lines: [
      ["Cluster", clusterId],
      ["Engine", `${kind.title} ${facts.version}, cgroups ${facts.cgroupVersion}`],
      ["Distribution", distribution],
      ["Image", `${image.name} (${image.isPresent ? "present" : source})`],
      ["Containers", `${nodeCount(counts)}: ${roles.map((role) => `${counts[role]} ${role}`).join(", ")}`],
      ["Limits", `memory ${options.memory ?? "none"}, CPUs ${options.cpus ?? "none"}, each`],
      ["Network", "its own bridge"],
      [
        "Reached at",
        reach === "direct"
          ? "the containers' own addresses"
          : "ports of 127.0.0.1, since the engine runs in a virtual machine",
      ],
      ["Volumes", options.volumes.length === 0 ? "none" : options.volumes.join(", ")],
      ["Ends", "when you run the destroy command"],
    ],
    facts: {
      cluster: clusterId,
      engine: { name: kind.name, version: facts.version, cgroupVersion: facts.cgroupVersion },
      distribution,
      image: { name: image.name, isPresent: image.isPresent },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      reach,
      volumes: options.volumes,
      ...(options.memory !== undefined && { memory: options.memory }),
      ...(options.cpus !== undefined && { cpus: options.cpus }),
    },
  };
}
