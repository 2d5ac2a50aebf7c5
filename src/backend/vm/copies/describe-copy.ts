import type { CopyRequest, CreationSummary } from "../../contract.ts";
import { nodeCount, roles } from "../../../model/cluster-record.ts";
import type { ResolvedCopy } from "./resolve-copy.ts";

/** Describes what a copy would create, for people and as data. */
export function describeCopy(
  { clusterId, source: { id }, snapshot }: CopyRequest,
  { source, saved }: Pick<ResolvedCopy, "source" | "saved">,
): CreationSummary {
  const { counts, distribution, variant } = source.facts;
  const { accelerator, memoryMegabytes, cpus } = saved.machines;
  return {
    lines: [
      ["Cluster", clusterId],
      ["Continues", `snapshot "${snapshot}" of cluster "${id}", made at ${saved.createdAt}`],
      ["Engine", `QEMU ${saved.qemuVersion}, ${accelerator}`],
      ["Software", `${variant}, ${distribution}`],
      ["Machines", `${nodeCount(counts)}: ${roles.map((role) => `${counts[role]} ${role}`).join(", ")}`],
      ["Per machine", `${memoryMegabytes} MB of memory, ${cpus} CPUs`],
      ["Network", "a private network of its own; outside traffic goes through this machine"],
      ["Reached at", "ports of 127.0.0.1"],
      ["Ends", "when you run the destroy command"],
    ],
    facts: {
      cluster: clusterId,
      from: { cluster: id, snapshot, createdAt: saved.createdAt },
      engine: { name: "qemu", version: saved.qemuVersion, accelerator },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      memoryMegabytes,
      cpus,
    },
  };
}
