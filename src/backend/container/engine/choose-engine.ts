import { createServer } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { ClusterError, messageOf, revised } from "../../../errors.ts";
import { homeFolder } from "../../../store/state-folder.ts";
import * as read from "../../../model/reader.ts";
import { readOwnJson } from "../../../system/files/read-text.ts";
import { parseUrl } from "../../../system/mask-url.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import { isPresent } from "./engine-errors.ts";
import {
  type EngineFacts,
  type EngineKind,
  type EngineName,
  type Reach,
  engineNames,
} from "./engine-kind.ts";
import { engineKinds } from "./engine-kinds.ts";
import { type Engine, type EngineRuntime, askJson, openEngine } from "./engine.ts";

/** The limit for an engine's first answer. The doctor's checks leave time for each engine in turn. */
const probeLimitMs = 15_000;
/** After this time, progress shows what the program is waiting for. */
const quietMs = 1_500;

/**
 * Returns the named engine, or else the first that answers and is usable: Docker, then Podman. Fails if a variable or
 * Docker's context chooses an engine that isn't usable. A `docker` that is
 * really Podman counts as Podman. Throws `machine-not-set-up`, which says what was tried for each engine and what to
 * do, and `deadline-passed` if an engine hangs: it may have the user's clusters, so no other engine takes its place.
 */
export async function chooseEngine(
  named: EngineName | undefined,
  runtime: EngineRuntime,
  signal: AbortSignal,
): Promise<Engine> {
  if (named !== undefined) return openNamed(named, runtime, signal);
  const failures: Failure[] = [];
  for (const name of engineNames) {
    const kind = engineKinds[name];
    const engine = openEngine(kind, "", runtime);
    try {
      if (!(await answers(engine, runtime, signal))) throw notOwn(kind);
      for (const { error } of failures) reportFailure(error, kind, runtime);
      return engine;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ClusterError)) throw error;
      const choice = isPresent(error) ? await chosenBy(name, runtime.environment) : undefined;
      if (choice !== undefined) throw chosenFailure(error, kind, choice);
      if (error.id === "deadline-passed") throw hangs(error, kind);
      failures.push({ kind, error });
    }
  }
  throw noEngine(failures);
}

const choosingVariables: Readonly<Record<EngineName, readonly string[]>> = {
  docker: ["DOCKER_HOST", "DOCKER_CONTEXT"],
  podman: ["CONTAINER_HOST", "CONTAINER_CONNECTION"],
};

/** How the user chose this engine; undefined if nothing says so. An engine that was chosen is never replaced by another one. */
async function chosenBy(name: EngineName, environment: Environment): Promise<string | undefined> {
  const choosing = choosingVariables[name].find(
    (candidate) => variable(environment, candidate) !== undefined,
  );
  if (choosing !== undefined || name === "podman") return choosing;
  const folder = variable(environment, "DOCKER_CONFIG") ?? join(homeFolder(environment), ".docker");
  const context = await readOwnJson(
    join(folder, "config.json"),
    read.field("currentContext", read.string),
  );
  return ["", "default"].includes(context ?? "") ? undefined : "docker context use";
}

const otherThan = ({ name }: EngineKind): EngineKind =>
  engineKinds[name === "docker" ? "podman" : "docker"];

function hangs(error: ClusterError, kind: EngineKind): ClusterError {
  const other = otherThan(kind);
  return revised(error, {
    hint: `${error.hint ?? ""}\nTo use ${other.title} instead, pass \`engine ${other.name}\`.`,
  });
}

function chosenFailure(error: ClusterError, kind: EngineKind, choice: string): ClusterError {
  const { title } = kind;
  const other = otherThan(kind).title;
  const undo =
    choice === "docker context use" ? "run: docker context use default" : `unset ${choice}`;
  return revised(error, {
    hint: `${title} was chosen (${choice}), so ${other} is not tried. ${error.hint ?? ""} To use another engine, ${undo}, or pass \`engine\`.`,
    facts: { choice },
  });
}

/** Users may look for the clusters of a skipped engine that is on this machine, so they get a note about it. */
function reportFailure(error: ClusterError, used: EngineKind, { progress }: EngineRuntime): void {
  const text = `${messageOf(error)} Using ${used.title}.`;
  if (isPresent(error)) progress.note(text);
  else progress.detail(1, text);
}

/** Returns the engine of this name; undefined if the program belongs to another one. Throws the errors of `chooseEngine`. */
export async function openOwn(
  name: EngineName,
  runtime: EngineRuntime,
  signal: AbortSignal,
): Promise<Engine | undefined> {
  const engine = openEngine(engineKinds[name], `--engine ${name}`, runtime);
  return (await answers(engine, runtime, signal)) ? engine : undefined;
}

/** Finds out which engine `docker` belongs to. Root's Podman isn't asked whether it is rootless, which takes half a second. */
async function openNamed(
  name: EngineName,
  runtime: EngineRuntime,
  signal: AbortSignal,
): Promise<Engine> {
  const open = (kind: EngineName): Engine =>
    openEngine(engineKinds[kind], `--engine ${name}`, runtime);
  if ((name === "podman" && isRoot()) || (await answers(open(name), runtime, signal)))
    return open(name);
  if (name === "docker") return openNamed("podman", runtime, signal);
  throw notOwn(engineKinds[name]);
}

function notOwn({ name, title, advice }: EngineKind): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `The program ${name} on the PATH is not ${title}.`,
    {
      hint: advice.install,
      facts: { program: name },
    },
  );
}

function isRoot(): boolean {
  try {
    return userInfo().uid === 0;
  } catch {
    // Node's function fails for users without a name.
    return false;
  }
}

/**
 * Returns false for a program that belongs to another engine. Throws the same errors as the engine's commands, and an
 * error for rootless Podman, which is never usable.
 */
async function answers(
  engine: Engine,
  { progress }: Pick<EngineRuntime, "progress">,
  signal: AbortSignal,
): Promise<boolean> {
  const { kind } = engine;
  const timer = setTimeout(() => progress.waiting(`waiting for ${kind.title} to answer`), quietMs);
  const asked = askJson(engine, { words: kind.probe, limitMs: probeLimitMs }, signal);
  const answer = await asked.finally(() => {
    clearTimeout(timer);
    progress.waiting("");
  });
  if (!kind.isOwnAnswer(answer)) return false;
  if (kind.name === "podman" && kind.readFacts(answer).isRootless) throw rootless(engine);
  return true;
}

interface Failure {
  readonly kind: EngineKind;
  readonly error: ClusterError;
}

function noEngine(failures: readonly Failure[]): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `Neither Docker nor Podman is usable here. ${failures.map(({ error }) => messageOf(error)).join(" ")}`,
    {
      hint: failures
        .map(({ kind, error }) => `For ${kind.title}: ${error.hint ?? "Try again."}`)
        .join("\n"),
      facts: { tried: engineNames },
      cause: failures[0]?.error,
    },
  );
}

export async function readEngineFacts(engine: Engine, signal: AbortSignal): Promise<EngineFacts> {
  return engine.kind.readFacts(
    await askJson(engine, { words: ["info", "--format={{json .}}"] }, signal),
  );
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
    const address = await addressOf(engine, signal);
    if (isOtherMachine(address)) throw elsewhere(engine, `its address is ${address}`);
    return "published";
  }
  if (facts.location === "virtual-machine") return "published";
  if (facts.location === "here") return "direct";
  const gateway = await bridgeAddress(engine, signal);
  if (gateway === "" || (await isOwnAddress(gateway))) return "direct";
  throw elsewhere(
    engine,
    `the address of its bridge, ${gateway}, is not an address of this machine`,
  );
}

/** Throws `machine-not-set-up` for a cluster that is offline, if its nodes are reached at published ports: these need a network with a way out. */
export function assertReachable(
  { kind }: Engine,
  { reach, isOffline }: { readonly reach: Reach; readonly isOffline: boolean },
): void {
  if (reach === "direct" || !isOffline) return;
  throw new ClusterError(
    "machine-not-set-up",
    `Nodes can't be offline here: ${kind.title} runs in a virtual machine, and leads to nodes only in networks with a way out.`,
    { hint: "Use cluster-vm, or a computer with Linux.", facts: { reach } },
  );
}

async function addressOf(engine: Engine, signal: AbortSignal): Promise<string> {
  const words = engine.kind.addressWords;
  return words === undefined ? "" : engine.ask({ words, accepts: () => true }, signal);
}

/** Whether the address is of another machine: neither a socket file nor loopback, which virtual machines use. */
function isOtherMachine(address: string): boolean {
  const host = parseUrl(address)?.hostname ?? "";
  return host !== "" && !/^(?:localhost|127\.[0-9.]+|\[::1\])$/.test(host);
}

/** Returns the bridge's address; empty if there is no such network, or none that reports an address. */
async function bridgeAddress(engine: Engine, signal: AbortSignal): Promise<string> {
  const format = "--format={{range .IPAM.Config}}{{.Gateway}} {{end}}";
  const text = await engine.ask(
    { words: ["network", "inspect", format, "bridge"], accepts: () => true },
    signal,
  );
  return text.split(" ").find((address) => /^[0-9.]+$/.test(address)) ?? "";
}

/** Tests this by opening a port there, because the runtime's list of interfaces lacks a bridge that has no container yet. */
function isOwnAddress(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(0, address, () => server.close(() => resolve(true)));
  });
}

function elsewhere({ kind }: Engine, reason: string): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `${kind.title} runs on another machine: ${reason}.`,
    {
      hint: `Run this program where ${kind.title} runs, or unset ${kind.name === "docker" ? "DOCKER_HOST" : "CONTAINER_HOST"}.`,
      facts: { reason },
    },
  );
}

function rootless({ kind }: Pick<Engine, "kind">): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `${kind.title} runs rootless here: its containers cannot run a whole system, and this machine cannot reach their addresses.`,
    { hint: kind.advice.rootless, facts: { rootless: true } },
  );
}
