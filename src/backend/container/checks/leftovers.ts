import type { Check } from "../../../doctor/check.ts";
import { leftovers } from "../../leftovers.ts";
import { destroyCommand } from "../engine.ts";
import { toClusters } from "../records.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";

/** What creates that were cut short have left, and clusters of which no container runs. */
export function leftoversCheck(facts: ContainerFacts): Check {
  return checkOfEngine("leftovers", facts, async (_, engine) => {
    const root = await facts.root();
    return leftovers({
      clusters: toClusters(await facts.inventory(), root),
      root,
      removal: (clusterId) => destroyCommand(engine, clusterId),
      troubleOf: async () => Promise.resolve(undefined),
    });
  });
}
