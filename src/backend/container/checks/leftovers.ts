import type { Check } from "../../../doctor/check.ts";
import { leftovers } from "../../leftovers.ts";
import { toClusters } from "../records.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";

/** What creates that were cut short have left, and clusters of which no container runs. */
export function leftoversCheck(facts: ContainerFacts, root: string): Check {
  return checkOfEngine("leftovers", facts, async () =>
    leftovers("container", {
      clusters: toClusters(await facts.inventory(), root),
      root,
      troubleOf: async () => Promise.resolve(undefined),
    }),
  );
}
