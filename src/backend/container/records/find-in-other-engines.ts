import type { OtherPlaces } from "../../contract.ts";
import { messageOf } from "../../../errors.ts";
import { openOwn } from "../engine/choose-engine.ts";
import type { Engine, EngineRuntime } from "../engine/engine.ts";
import { isPresent } from "../engine/engine-errors.ts";
import { type EngineName, engineNames } from "../engine/engine-kind.ts";
import { creationsRoot, readInventory } from "./inventory.ts";
import { toClusters } from "./records.ts";

/**
 * Finds other engines on this machine that have a cluster with this id, and engines that could not be asked. It fails
 * only on an abort.
 */
export async function findInOtherEngines(
  { kind }: Pick<Engine, "kind">,
  clusterId: string,
  runtime: EngineRuntime,
  signal: AbortSignal,
): Promise<OtherPlaces> {
  const others = engineNames.filter((name) => name !== kind.name);
  const asked = await Promise.all(others.map(async (name) => ask(name, clusterId, runtime, signal)));
  return {
    places: asked.flatMap(({ places }) => places),
    unreachable: asked.flatMap(({ unreachable }) => unreachable),
  };
}

async function ask(
  name: EngineName,
  clusterId: string,
  runtime: EngineRuntime,
  signal: AbortSignal,
): Promise<OtherPlaces> {
  try {
    const engine = await openOwn(name, runtime, signal);
    if (engine === undefined) return { places: [], unreachable: [] };
    const inventory = await readInventory(engine, { clusterId }, creationsRoot(engine, runtime), signal);
    return { places: toClusters(inventory, "").length > 0 ? [name] : [], unreachable: [] };
  } catch (error) {
    signal.throwIfAborted();
    const reason = messageOf(error);
    return { places: [], unreachable: isPresent(error) ? [{ place: name, reason }] : [] };
  }
}
