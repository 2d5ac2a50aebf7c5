import { type Counts, nodeCount } from "../../model/cluster-record.ts";
import { nodesText } from "../../system/amounts.ts";
import type { Clock } from "../../system/runtime.ts";
import type { CopyRequest, CreationSummary } from "../contract.ts";
import { endFacts, endLine } from "./lifetimes.ts";

interface CopyFacts extends CreationSummary {
  /** When the snapshot was made, as ISO 8601. */
  readonly createdAt: string | undefined;
  readonly counts: Counts;
  /** With its version. */
  readonly engine: string;
}

/** Describes what a copy would create, for people and as data. `lines` and `facts` are those of one backend. */
export function describeCopy(
  { clusterId, source, snapshot, lifetimeMs }: CopyRequest,
  { createdAt, counts, engine, lines, facts }: CopyFacts,
  clock: Clock,
): CreationSummary {
  const { id, variant, distribution } = source;
  return {
    lines: [
      ["Cluster", clusterId],
      ["Continues", `snapshot "${snapshot}" of cluster "${id}", made at ${createdAt ?? "an unknown time"}`],
      ["Engine", engine],
      ["Software", `${variant}, ${distribution}`],
      ["Machines", `${nodeCount(counts)}: ${nodesText(counts)}`],
      ...lines,
      endLine(lifetimeMs, clock),
    ],
    facts: {
      cluster: clusterId,
      from: { cluster: id, snapshot, createdAt },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      ...facts,
      ...endFacts(lifetimeMs, clock),
    },
  };
}
