import { type Check, type Outcome, skip } from "../../../doctor/check.ts";
import { ClusterError } from "../../../errors.ts";
import { once } from "../../../system/once.ts";
import { describeContainers, describeNetworks } from "../describe.ts";
import type { Engine } from "../engine.ts";
import { type EngineFacts, findReach, type Reach, readEngineFacts } from "../engine-facts.ts";
import type { Inventory } from "../records.ts";

/** For checks that wait for the engine. */
const engineLimitMs = 20_000;

/** What several checks want to know of the engine: each asked once, when first wanted, and shared. */
export interface ContainerFacts {
  readonly engine: () => Promise<EngineFacts>;
  readonly reach: () => Promise<Reach>;
  /** Ours. */
  readonly inventory: () => Promise<Inventory>;
}

export function containerFacts(engine: Engine, platform: NodeJS.Platform, signal: AbortSignal): ContainerFacts {
  const facts = once(async () => readEngineFacts(engine, signal));
  return {
    engine: facts,
    reach: once(async () => findReach(engine, await facts(), platform, signal)),
    inventory: once(async () => {
      const [containers, networks] = await Promise.all([
        describeContainers(engine, "all", signal),
        describeNetworks(engine, "all", signal),
      ]);
      return { containers, networks };
    }),
  };
}

/** A check that is skipped where the engine can't be asked, since that has a check of its own. */
export function checkOfEngine(
  name: string,
  facts: ContainerFacts,
  judge: (engine: EngineFacts) => Outcome | Promise<Outcome>,
): Check {
  const run = async (): Promise<Outcome> => {
    const engine = await facts.engine().catch((error: unknown) => {
      if (error instanceof ClusterError) return undefined;
      throw error;
    });
    return engine === undefined ? skip("Not checked: Docker cannot be asked.") : judge(engine);
  };
  return { name, limitMs: engineLimitMs, run };
}
