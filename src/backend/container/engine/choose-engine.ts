import { createServer, isIPv4 } from "node:net";
import { ClusterError, messageOf, revised } from "../../../errors.ts";
import { ownUserId } from "../../../system/own-user.ts";
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
import { dockerContext, ownInterfaces } from "./passage.ts";
import { outsideLine } from "../../../system/printable.ts";

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
      const choice = isPresent(error) ? chosenBy(name, runtime.environment) : undefined;
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
function chosenBy(name: EngineName, environment: Environment): string | undefined {
  const choosing = choosingVariables[name].find(
    (candidate) => variable(environment, candidate) !== undefined,
  );
  if (choosing !== undefined || name === "podman") return choosing;
  return dockerContext(environment) === undefined ? undefined : "docker context use";
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
  if ((name === "podman" && ownUserId() === 0) || (await answers(open(name), runtime, signal)))
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

/**
 * Returns false for a program that belongs to another engine. Throws the same errors as the engine's commands, and an
 * error for rootless Podman under cgroups 1, which is never usable.
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
  if (kind.name === "podman") assertNotConfined(kind, kind.readFacts(answer));
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

/** How nodes will be reached, and why in that way, for people. */
export interface Way {
  readonly reach: Reach;
  readonly why: string;
}

export const reachText = (reach: Reach, { title }: Pick<EngineKind, "title">): string =>
  reach === "direct" ? "at the containers' own addresses" : `through ${title}`;

/**
 * Expects nodes at their own addresses only where the engine's network is this computer's. Each command uses these addresses only if it also finds the
 * bridge of the cluster's network, and logs in only with the node's key. Throws `machine-not-set-up` if the engine isn't usable.
 */
export async function findReach(
  engine: Engine,
  facts: EngineFacts,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<Way> {
  assertNotConfined(engine.kind, facts);
  const { title } = engine.kind;
  const throughEngine = (why: string): Way => ({ reach: "engine", why });
  if (facts.isRootless) return throughEngine(`${title} runs rootless, with a network of its own`);
  if (platform !== "linux" || facts.location === "virtual-machine")
    return throughEngine(`${title} runs in a virtual machine`);
  if (facts.location === "elsewhere") return throughEngine(`${title} runs on another machine`);
  if (facts.location === "here") return { reach: "direct", why: `${title} runs on this machine` };
  const { name, address } = await defaultBridge(engine, signal);
  // Before the first container, the engine reports no address.
  const isOwn = ownInterfaces().has(name) && (address === "" || (await isOwnAddress(address)));
  const what = outsideLine([name, address].join(" ").trim()) || "nameless";
  const why = `the bridge of its default network, ${what}, is ${isOwn ? "" : "not "}on this machine`;
  return { reach: isOwn ? "direct" : "engine", why };
}

/** What isn't known is empty. */
async function defaultBridge(
  engine: Engine,
  signal: AbortSignal,
): Promise<{ readonly name: string; readonly address: string }> {
  const format =
    '--format={{index .Options "com.docker.network.bridge.name"}} {{range .IPAM.Config}}{{.Gateway}} {{end}}';
  const text = await engine.ask(
    { words: ["network", "inspect", format, engine.kind.defaultNetwork.name], accepts: () => true },
    signal,
  );
  const [name = "", ...addresses] = text.split(" ");
  return { name, address: addresses.find((address) => isIPv4(address)) ?? "" };
}

/** Tests this by opening a port there, because the runtime's list of interfaces lacks a bridge that has no container yet. */
function isOwnAddress(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(0, address, () => server.close(() => resolve(true)));
  });
}

/** Only with cgroups 2 may a container of an ordinary user have control groups, which systemd needs. */
function assertNotConfined(
  { title, advice }: EngineKind,
  {
    isRootless,
    cgroupVersion,
    hasRemappedUsers,
  }: Pick<EngineFacts, "isRootless" | "cgroupVersion" | "hasRemappedUsers">,
): void {
  if (hasRemappedUsers)
    throw new ClusterError(
      "machine-not-set-up",
      `${title}'s daemon has userns-remap: containers may not be privileged there, and with --userns=host all files of a node would belong to another user than root.`,
      {
        hint: "Use a daemon without userns-remap. A rootless one keeps root on a node away from this computer just as well: https://docs.docker.com/engine/security/rootless/",
        facts: { remapped: true },
      },
    );
  if (!isRootless || cgroupVersion === "2") return;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} runs rootless under cgroups 1 here: its containers get no control groups of their own, which the nodes' systemd needs.`,
    { hint: advice.rootless, facts: { rootless: true } },
  );
}
