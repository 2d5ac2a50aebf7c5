import type { ClusterRecord } from "../../../cluster/record.ts";
import { type Check, type Outcome, pass, warn } from "../../../doctor/check.ts";
import { destroyCommand, type Engine } from "../engine.ts";
import { type Inventory, toClusters } from "../records.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";

/** What creates that were cut short have left, and clusters of which no container runs. */
export function leftoversCheck(facts: ContainerFacts): Check {
  return checkOfEngine("leftovers", facts, (_, engine) => find(facts, engine));
}

async function find(facts: ContainerFacts, engine: Engine): Promise<Outcome> {
  const inventory = await facts.inventory();
  const clusters = toClusters(inventory, await facts.root());
  const judged = clusters.map((cluster) => ({ cluster, what: whatIsLeft(cluster, inventory) }));
  const left = judged.filter(({ what }) => what !== undefined);
  if (left.length === 0) return pass("None");
  return warn(
    `There are ${left.map(({ cluster, what }) => `cluster "${cluster.id}" (${what})`).join(", ")}.`,
    `Remove what you need no more: ${left.map(({ cluster }) => destroyCommand(engine, cluster.id)).join("; ")}`,
  );
}

function whatIsLeft(cluster: ClusterRecord, { abandoned }: Inventory): string | undefined {
  if (abandoned.has(cluster.creationId)) return "its create was cut short";
  const ended = cluster.nodes.filter((node) => node.state === "ended");
  return cluster.nodes.length > 0 && ended.length === cluster.nodes.length
    ? "all of its containers have stopped"
    : undefined;
}
