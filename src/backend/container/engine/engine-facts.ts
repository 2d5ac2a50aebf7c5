import { createServer } from "node:net";
import { ClusterError } from "../../../errors.ts";
import { parseUrl } from "../../../system/mask-url.ts";
import { askJson, type Engine } from "./engine.ts";
import type { EngineFacts, Reach } from "./engine-kind.ts";

export async function readEngineFacts(engine: Engine, signal: AbortSignal): Promise<EngineFacts> {
  return engine.kind.readFacts(await askJson(engine, { words: ["info", "--format={{json .}}"] }, signal));
}

/** Throws `machine-not-set-up` if the engine isn't usable. */
export async function findReach(
  engine: Engine,
  facts: EngineFacts,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<Reach> {
  if (facts.isRootless) throw rootless(engine);
  if (facts.location === "elsewhere") throw elsewhere(engine, "it reports a remote host");
  if (platform === "darwin") {
    const address = await spokenTo(engine, signal);
    if (isFar(address)) throw elsewhere(engine, `its address is ${address}`);
    return "published";
  }
  if (facts.location === "virtual-machine") return "published";
  if (facts.location === "here") return "direct";
  const gateway = await bridgeAddress(engine, signal);
  if (gateway === "" || (await isOwnAddress(gateway))) return "direct";
  throw elsewhere(engine, `the address of its bridge, ${gateway}, is not an address of this machine`);
}

/** Returns the address of the engine; empty if the engine has none or doesn't report it. */
async function spokenTo(engine: Engine, signal: AbortSignal): Promise<string> {
  const words = engine.kind.addressWords;
  return words === undefined ? "" : engine.ask({ words, accepts: () => true }, signal);
}

/**
 * Whether the address belongs to another machine, and isn't a socket file or this machine's own loopback, which virtual
 * machines use.
 */
function isFar(address: string): boolean {
  const host = parseUrl(address)?.hostname ?? "";
  return host !== "" && !/^(?:localhost|127\.[0-9.]+|\[::1\])$/.test(host);
}

/** Returns the bridge's address; empty if there is no such network, or none that reports an address. */
async function bridgeAddress(engine: Engine, signal: AbortSignal): Promise<string> {
  const format = "--format={{range .IPAM.Config}}{{.Gateway}} {{end}}";
  const text = await engine.ask({ words: ["network", "inspect", format, "bridge"], accepts: () => true }, signal);
  return text.split(" ").find((address) => /^[0-9.]+$/.test(address)) ?? "";
}

/**
 * Tests this by opening a port there, because the runtime's list of interfaces lacks a bridge that has no container
 * yet.
 */
function isOwnAddress(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(0, address, () => server.close(() => resolve(true)));
  });
}

function elsewhere({ kind }: Engine, reason: string): ClusterError {
  return new ClusterError("machine-not-set-up", `${kind.title} runs on another machine: ${reason}.`, {
    hint: `Run this program where ${kind.title} runs, or unset ${kind.name === "docker" ? "DOCKER_HOST" : "CONTAINER_HOST"}.`,
    facts: { reason },
  });
}

export function rootless({ kind }: Pick<Engine, "kind">): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `${kind.title} runs rootless here: its containers cannot run a whole system, and this machine cannot reach their addresses.`,
    { hint: kind.advice.rootless, facts: { rootless: true } },
  );
}
