import { ClusterError } from "../../errors.ts";
import { type Check, type Outcome, skip } from "../../model/check.ts";
import { once } from "../../system/concurrency.ts";
import type { Runtime } from "../../system/runtime.ts";
import { chooseEngine, findReach, readEngineFacts } from "./engine/choose-engine.ts";
import type { EngineFacts, EngineName, Reach } from "./engine/engine-kind.ts";
import type { Engine } from "./engine/engine.ts";
import { creationsRoot, readInventory } from "./records/records.ts";

/** The limit for checks that wait for the engine. */
const engineLimitMs = 40_000;

/** Facts about the engine that several checks share. Each is requested once, when first needed. */
export interface ContainerFacts {
  readonly engine: () => Promise<Engine>;
  readonly told: () => Promise<EngineFacts>;
  readonly reach: () => Promise<Reach>;
  /** The folder of the creations that this machine has made with the engine. */
  readonly root: () => Promise<string>;
  /** Everything of ours, and what only looks like ours. */
  readonly inventory: () => ReturnType<typeof readInventory>;
}

export function containerFacts(
  named: EngineName | undefined,
  runtime: Runtime,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): ContainerFacts {
  const engine = once(async () => chooseEngine(named, runtime, signal));
  const told = once(async () => readEngineFacts(await engine(), signal));
  const root = once(async () => creationsRoot(await engine(), runtime));
  return {
    engine,
    told,
    root,
    reach: once(async () => findReach(await engine(), await told(), platform, signal)),
    inventory: once(async () => readInventory(await engine(), "all", await root(), signal)),
  };
}

/** Returns a check that is skipped if the engine doesn't answer, since that has a check of its own. */
export function checkOfEngine(
  name: string,
  facts: ContainerFacts,
  judge: (told: EngineFacts, engine: Engine) => Outcome | Promise<Outcome>,
): Check {
  const run = async (): Promise<Outcome> => {
    const known = await Promise.all([facts.told(), facts.engine()]).catch((error: unknown) => {
      if (error instanceof ClusterError) return undefined;
      throw error;
    });
    return known === undefined ? skip("Not checked: no container engine was found.") : judge(...known);
  };
  return { name, limitMs: engineLimitMs, run };
}
