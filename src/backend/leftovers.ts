import type { ClusterRecord } from "../cluster/record.ts";
import { type Outcome, pass, warn } from "../doctor/check.ts";
import { abandonedCreations } from "../system/creation-folder.ts";
import { destroyCommand, type LocalName } from "./local-backend.ts";

/**
 * The doctor's word on what creates that were cut short have left, and on clusters of which nothing runs. `root` is the folder of this
 * machine's creations.
 */
export async function leftovers(
  backend: LocalName,
  clusters: readonly ClusterRecord[],
  root: string,
): Promise<Outcome> {
  const judged = await Promise.all(
    clusters.map(async (cluster) => ({ cluster, what: await whatIsLeft(cluster, root) })),
  );
  const left = judged.filter(({ what }) => what !== undefined);
  if (left.length === 0) return pass("None");
  return warn(
    `There are ${left.map(({ cluster, what }) => `cluster "${cluster.id}" (${what})`).join(", ")}.`,
    `Remove what you need no more: ${left.map(({ cluster }) => destroyCommand(backend, cluster.id)).join("; ")}`,
  );
}

async function whatIsLeft(cluster: ClusterRecord, root: string): Promise<string | undefined> {
  const abandoned = await abandonedCreations(root, cluster.id);
  if (abandoned.some(({ creation }) => creation.creationId === cluster.creationId)) return "its create was cut short";
  const ended = cluster.nodes.filter((node) => node.state === "ended");
  return cluster.nodes.length > 0 && ended.length === cluster.nodes.length ? "none of its nodes runs" : undefined;
}
