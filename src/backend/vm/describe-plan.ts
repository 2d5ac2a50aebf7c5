import type { CreationRequest, CreationSummary } from "../contract.ts";
import { nodeCount, roles } from "../../model/cluster-record.ts";
import { whyTranslated } from "./qemu/accelerator.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import type { VmOptions } from "./options.ts";

/** Describes what a creation would create, for people and as data. */
export function describePlan(
  { clusterId, counts, options }: CreationRequest<VmOptions>,
  { qemuVersion, accelerator, choice, image }: ResolvedCreation,
): CreationSummary {
  const { memoryMegabytes, cpus, diskMegabytes } = options;
  const isPresent = image.path !== undefined;
  const slowly = accelerator === "tcg" ? `; ${whyTranslated(choice)}` : "";
  return {
    lines: [
      ["Cluster", clusterId],
      ["Engine", `QEMU ${qemuVersion}, ${accelerator}${slowly}`],
      ["Image", `${image.name} (${isPresent ? "present" : "will be downloaded"})`],
      ["Machines", `${nodeCount(counts)}: ${roles.map((role) => `${counts[role]} ${role}`).join(", ")}`],
      ["Per machine", `${memoryMegabytes} MB of memory, ${cpus} CPUs, a disk of up to ${diskMegabytes} MB`],
      ["Network", "a private network between the machines; outside traffic goes through this machine"],
      ["Reached at", "ports of 127.0.0.1"],
      ["Ends", "when you run the destroy command"],
    ],
    facts: {
      cluster: clusterId,
      engine: { name: "qemu", version: qemuVersion, accelerator },
      image: { name: image.name, isPresent },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      memoryMegabytes,
      cpus,
      diskMegabytes,
    },
  };
}
