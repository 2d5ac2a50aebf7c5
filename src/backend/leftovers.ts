import type { ClusterRecord } from "../model/cluster-record.ts";
import { type Outcome, pass, warn } from "../model/check.ts";
import { abandonedCreations, isCreationUnderWay } from "../system/files/creation-folder.ts";

interface Looked {
  readonly clusters: readonly ClusterRecord[];
  /** The folder of this machine's creations. */
  readonly root: string;
  /** Returns the command that removes a cluster. */
  readonly removal: (clusterId: string) => string;
  /** Returns any other problem that a backend finds with a running cluster. */
  readonly troubleOf: (cluster: ClusterRecord) => Promise<string | undefined>;
}

/** Reports, for `doctor`, what interrupted creates left behind and clusters that have nothing running. */
export async function leftovers(looked: Looked): Promise<Outcome> {
  const judged = await Promise.all(
    looked.clusters.map(async (cluster) => ({ cluster, what: await whatIsLeft(cluster, looked) })),
  );
  const left = judged.filter(({ what }) => what !== undefined);
  if (left.length === 0) return pass("None");
  return warn(
    `Left over: ${left.map(({ cluster, what }) => `cluster "${cluster.id}" (${what})`).join(", ")}.`,
    `Remove those that you no longer need: ${left.map(({ cluster }) => looked.removal(cluster.id)).join("; ")}`,
  );
}

async function whatIsLeft(cluster: ClusterRecord, { root, troubleOf }: Looked): Promise<string | undefined> {
  const abandoned = await abandonedCreations(root, cluster.id);
  if (abandoned.some(({ creation }) => creation.creationId === cluster.creationId)) return "its create was interrupted";
  const hasNodes = cluster.nodes.length > 0;
  if (hasNodes && cluster.nodes.every((node) => node.state === "ended")) return "none of its nodes is running";
  const trouble = await troubleOf(cluster);
  if (hasNodes || trouble !== undefined) return trouble;
  // For example, only a network exists. A creation also begins like this.
  return (await isCreationUnderWay(cluster.directory)) ? undefined : "it has no nodes";
}
