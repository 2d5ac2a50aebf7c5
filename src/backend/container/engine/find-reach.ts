import { inspect } from "../records/read-containers.ts";
import { assertUsable } from "./assert-usable.ts";
import type { DescribedNetwork, EngineFacts, EngineKind, Reach } from "./engine-kind.ts";
import type { Engine } from "./engine.ts";
import { ownInterfaces } from "./passage.ts";

/** How nodes will be reached, and why in that way, for people. `unknown`: the cluster's own network will show it. */
export interface Way {
  readonly reach: Reach | "unknown";
  readonly why: string;
}

export function reachText(reach: Way["reach"], { title }: Pick<EngineKind, "title">): string {
  if (reach === "engine") return `through ${title}`;
  const direct = "at the containers' own addresses";
  return reach === "direct"
    ? direct
    : `${direct} if ${title} runs on this computer, else through it`;
}

/**
 * What the label of a cluster says: each command proves `direct` by the bridge of the cluster's
 * network before it relies on it.
 */
export const labelledReach = ({ reach }: Pick<Way, "reach">): Reach =>
  reach === "unknown" ? "direct" : reach;

/**
 * Expects nodes at their own addresses only where a network of the engine is proved to be this
 * computer's. Each command uses these addresses only if it also finds the bridge of the cluster's
 * network, and logs in only with the node's key. Throws `machine-not-set-up` if the engine isn't
 * usable.
 */
export async function findReach(
  engine: Engine,
  facts: EngineFacts,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<Way> {
  assertUsable(engine.kind, facts);
  const { title } = engine.kind;
  const throughEngine = (why: string): Way => ({ reach: "engine", why });
  if (facts.isRootless) return throughEngine(`${title} runs rootless, with a network of its own`);
  if (platform !== "linux" || facts.location === "virtual-machine")
    return throughEngine(`${title} runs in a virtual machine`);
  if (facts.location === "elsewhere") return throughEngine(`${title} runs on another computer`);
  if (facts.location === "service") return throughEngine(`${title} is used through its service`);
  if (facts.location === "here") return { reach: "direct", why: `${title} runs on this computer` };
  const networks = await customNetworks(engine, signal);
  const own = ownInterfaces();
  const shared = networks.map(randomBridge).find((bridge) => own.has(bridge));
  if (shared !== undefined)
    return { reach: "direct", why: `${title}'s bridge ${shared} is on this computer` };
  const described = await inspect(engine, { names: networks, kind: "network" }, signal);
  if (described.some((network) => hasRandomBridge(engine.kind.readNetwork(network))))
    return throughEngine(`${title}'s bridges are not on this computer`);
  return { reach: "unknown", why: `${title} has no network yet that would show where it runs` };
}

/** The ids of networks that may have bridges with random names. */
async function customNetworks(engine: Engine, signal: AbortSignal): Promise<readonly string[]> {
  const custom = ["--filter=type=custom", "--filter=driver=bridge"];
  const words = ["network", "ls", "--quiet", "--no-trunc", ...custom];
  const lines = (await engine.ask({ words }, signal)).split("\n");
  return lines.filter((line) => /^[0-9a-f]{64}$/.test(line));
}

/** Docker's name for a bridge, from the random id of its network, so that no other computer has one of that name. */
const randomBridge = (id: string): string => `br-${id.slice(0, 12)}`;

const hasRandomBridge = ({ id, bridge }: DescribedNetwork): boolean =>
  typeof id === "string" && bridge === randomBridge(id);
