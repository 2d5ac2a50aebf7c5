/** The engine's own network, by which commands recognize an engine that they have met before. */
import { readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readOwnText } from "../../../system/files/read-text.ts";
import { readBootId } from "../../../system/processes/process-identity.ts";
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
 * Names the run of the engine and the network that this program is in, since another container or
 * computer may have the same folder and engine; undefined if either isn't known.
 */
async function meetingOf(kind: EngineKind, usual: DescribedNetwork): Promise<string | undefined> {
  const [run, boot, network] = [
    engineRun(kind, usual),
    await readBootId(),
    await readlink("/proc/self/ns/net").catch(() => ""),
  ];
  return run && boot && network ? `${run} ${boot} ${network}` : undefined;
}

/**
 * Keeps for later commands that the engine is on this computer, if `bridge` is here: that of a
 * network with a random id.
 */
export async function rememberHere(
  { kind }: Pick<Engine, "kind">,
  { root, usual }: Met,
  bridge: unknown,
): Promise<void> {
  if (typeof bridge !== "string" || !ownInterfaces().has(bridge)) return;
  const meeting = await meetingOf(kind, usual);
  // If writing fails, the next command asks again.
  if (meeting !== undefined)
    await writeFile(memoryOf(root), meeting, { mode: 0o600 }).catch(() => {});
}

/**
 * Whether that was kept since the engine and this computer were started. The bridge of its own
 * network must be here still.
 */
export async function isRememberedHere(
  { kind }: Pick<Engine, "kind">,
  { root, usual }: Met,
): Promise<boolean> {
  if (typeof usual.bridge !== "string" || !ownInterfaces().has(usual.bridge)) return false;
  const meeting = await meetingOf(kind, usual);
  return meeting !== undefined && (await readOwnText(memoryOf(root)).catch(() => "")) === meeting;
}
