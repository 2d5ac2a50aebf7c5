import type { ClusterRecord } from "../../../cluster/record.ts";
import { type Check, type Outcome, pass, warn } from "../../../doctor/check.ts";
import { abandonedCreations } from "../../../system/creation-folder.ts";
import { toClusters } from "../records.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";

/** What creates that were cut short have left, and clusters of which no container runs. */
export function leftoversCheck(facts: ContainerFacts, root: string): Check {
  return checkOfEngine("leftovers", facts, () => find(facts, root));
}

async function find(facts: ContainerFacts, root: string): Promise<Outcome> {
  const clusters = toClusters(await facts.inventory(), root);
  const judged = await Promise.all(
    clusters.map(async (cluster) => ({ cluster, what: await whatIsLeft(cluster, root) })),
  );
  const left = judged.filter(({ what }) => what !== undefined);
  if (left.length === 0) return pass("None");
  return warn(
    `There are ${left.map(({ cluster, what }) => `cluster "${cluster.id}" (${what})`).join(", ")}.`,
    `Remove what you need no more: ${left.map(({ cluster }) => `cluster-container destroy --cluster-id ${cluster.id}`).join("; ")}`,
  );
}

async function whatIsLeft(cluster: ClusterRecord, root: string): Promise<string | undefined> {
  const abandoned = await abandonedCreations(root, cluster.id);
  if (abandoned.some(({ creation }) => creation.creationId === cluster.creationId)) return "its create was cut short";
  const ended = cluster.nodes.filter((node) => node.state === "ended");
  return cluster.nodes.length > 0 && ended.length === cluster.nodes.length
    ? "all of its containers have stopped"
    : undefined;
}
