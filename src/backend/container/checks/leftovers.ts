import type { Check } from "../../../model/check.ts";
import { withStrangers } from "../../with-strangers.ts";
import { leftovers } from "../../leftovers.ts";
import { destroyCommand } from "../engine/engine.ts";
import { toClusters } from "../records/records.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";

/** Reports what interrupted creates left behind, clusters without a running container, and things that only look like ours. */
export function leftoversCheck(facts: ContainerFacts): Check {
  return checkOfEngine("leftovers", facts, async (_, engine) => {
    const [root, inventory] = await Promise.all([facts.root(), facts.inventory()]);
    const outcome = await leftovers({
      clusters: toClusters(inventory, root),
      root,
      removal: (clusterId) => destroyCommand(engine, clusterId),
      troubleOf: async () => Promise.resolve(undefined),
    });
    const { name } = engine.kind;
    return withStrangers(
      outcome,
      inventory.strangers,
      `If nobody needs it, remove it with ${name} rm or ${name} network rm`,
    );
  });
}
