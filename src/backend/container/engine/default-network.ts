/** The engine's own network, by which commands recognize an engine that they have met before. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readOwnText } from "../../../system/files/read-text.ts";
import { inspect } from "../records/read-containers.ts";
import type { DescribedNetwork, EngineKind } from "./engine-kind.ts";
import type { Engine } from "./engine.ts";
import { ownInterfaces } from "./passage.ts";

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

/** `usual` is the engine's own network, `root` the folder of this machine's creations. */
interface Met {
  readonly root: string;
  readonly usual: DescribedNetwork;
}

const memoryOf = (root: string): string => join(root, ".here");

/**
 * Keeps for later commands that the engine is on this computer, if `bridge` is here: that of a
 * network with a random id.
 */
export async function rememberHere(
  { kind }: Pick<Engine, "kind">,
  { root, usual }: Met,
  bridge: unknown,
): Promise<void> {
  const run = engineRun(kind, usual);
  if (run === "" || typeof bridge !== "string" || !ownInterfaces().has(bridge)) return;
  // If writing fails, the next command asks again.
  await writeFile(memoryOf(root), run, { mode: 0o600 }).catch(() => {});
}

/**
 * Whether that was kept since the engine was started. The bridge of its own network must be here
 * too, since a container that has the folder and the engine's socket has a network of its own.
 */
export async function isRememberedHere(
  { kind }: Pick<Engine, "kind">,
  { root, usual }: Met,
): Promise<boolean> {
  const run = engineRun(kind, usual);
  if (run === "" || typeof usual.bridge !== "string" || !ownInterfaces().has(usual.bridge))
    return false;
  return (await readOwnText(memoryOf(root)).catch(() => "")) === run;
}
