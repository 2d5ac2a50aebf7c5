import { type ClusterRecord, type Counts, nodeCount } from "../../model/cluster-record.ts";
import { momentText, nodesText } from "../../system/amounts.ts";
import type { Clock } from "../../system/runtime.ts";
import type { CopyRequest, CreationSummary } from "../contract.ts";
import { endFacts, endLine } from "./lifetimes.ts";

export const outsideText = "; outside traffic goes through this computer";

/** Continues a description of the nodes' network. */
export const wayOutText = (isOffline: boolean | undefined, usual = ""): string =>
  isOffline === true ? "; nodes reach each other and nothing else" : usual;

interface OriginFacts<Facts>
  extends Pick<CreationSummary, "lines">, Pick<ClusterRecord, "variant" | "distribution"> {
  readonly facts: Facts;
  readonly counts: Counts;
  /** With its version. */
  readonly engine: string;
  /** Names the copy's source: `title` for people, `summary` as data. */
  readonly title: string;
  readonly summary: SnapshotOrigin;
}

export interface SnapshotOrigin {
  /** The file or URL that holds it; absent: the cluster is on this computer. */
  readonly file?: string;
  readonly cluster: string;
  readonly snapshot: string;
  /** ISO 8601. */
  readonly createdAt: string | undefined;
}

export function snapshotTitle({ cluster, snapshot, createdAt }: SnapshotOrigin): string {
  // Always with the date: snapshots grow old.
  const when = createdAt === undefined ? "at an unknown time" : momentText(createdAt, 0);
  return `snapshot "${snapshot}" of cluster "${cluster}", made ${when}`;
}

/** Describes what a copy would create, for people and as data. `lines` and `facts` are those of one backend. */
export function describeOrigin<Facts extends object>(
  { clusterId, lifetimeMs }: Pick<CopyRequest, "clusterId" | "lifetimeMs">,
  { title, summary, variant, distribution, counts, engine, lines, facts }: OriginFacts<Facts>,
  clock: Clock,
) {
  return {
    counts,
    lines: [
      ["Cluster", clusterId],
      ["Continues", title],
      ["Engine", engine],
      ["Software", `${variant}, ${distribution}`],
      ["Machines", `${nodeCount(counts)}: ${nodesText(counts)}`],
      ...lines,
      endLine(lifetimeMs, clock),
    ],
    facts: {
      cluster: clusterId,
      from: summary,
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      ...facts,
      ...endFacts(lifetimeMs, clock),
    },
  } satisfies CreationSummary;
}
