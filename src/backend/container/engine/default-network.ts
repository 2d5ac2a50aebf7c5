/** The engine's own network, by which commands recognize a start of the engine. */
import { inspect } from "../records/read-containers.ts";
import type { DescribedNetwork, EngineKind } from "./engine-kind.ts";
import type { Engine } from "./engine.ts";

export async function readDefaultNetwork(
  engine: Engine,
  signal: AbortSignal,
): Promise<DescribedNetwork> {
  const { name } = engine.kind.defaultNetwork;
  const [described] = await inspect(engine, { names: [name], kind: "network" }, signal);
  return engine.kind.readNetwork(described);
}

/** Returns a text that is another one after each start of the engine; empty: not known. */
export const engineRun = (
  { defaultNetwork }: Pick<EngineKind, "defaultNetwork">,
  { id }: Pick<DescribedNetwork, "id">,
): string => (defaultNetwork.isRenewed && typeof id === "string" ? id : "");
