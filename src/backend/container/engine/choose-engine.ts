import { ClusterError, hintOf, messageOf, revised, assertExpected } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { ownUserId } from "../../../system/own-user.ts";
import { outsideLine } from "../../../system/printable.ts";
import type { Environment } from "../../../system/runtime.ts";
import type { Limits } from "../limits.ts";
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
import { type Engine, type EngineWork, askJson, openEngine } from "./engine.ts";
import { choosingVariables, dockerContext, engineAddress, ownInterfaces } from "./passage.ts";
import { describeEach } from "../records/read-containers.ts";

/**
 * The limits for an engine's first answer, within that of all checks of the doctor. Podman has no daemon that could hang: on a translated processor, a
 * rootless one was seen to take 20 s.
 */
const probeLimitsMs: Readonly<Record<EngineName, number>> = { docker: 15_000, podman: 30_000 };
/** After this time, progress shows what the program is waiting for. */
const quietMs = 1_500;

/**
 * Returns the named engine, or else the first that answers and is usable: Docker, then Podman. Fails if a variable or
 * Docker's context chooses an engine that isn't usable. A `docker` that is
 * really Podman counts as Podman. Throws `machine-not-set-up`, which says what was tried for each engine and what to
 * do, and `deadline-passed` if an engine hangs: it may have the user's clusters, so no other engine takes its place.
 */
export async function chooseEngine(
  work: EngineWork,
  named: EngineName | undefined,
): Promise<Engine> {
  if (named !== undefined) return openNamed(work, named);
  const failures: Failure[] = [];
  for (const name of engineNames) {
    const kind = engineKinds[name];
    const engine = openEngine(kind, "", work);
    try {
      if (!(await answers(work, engine))) throw notOwn(kind);
      for (const { error } of failures) reportFailure(error, kind, work);
      return engine;
    } catch (error) {
      assertExpected(error, work.signal);
      const choice = isPresent(error) ? chosenBy(name, work.environment) : undefined;
      if (choice !== undefined) throw chosenFailure(error, kind, choice);
      if (error.id === "deadline-passed") throw hangs(error, kind);
      failures.push({ kind, error });
    }
  }
  throw noEngine(failures);
}

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
    hint: `${hintOf(error) ?? ""}\nTo use ${other.title} instead, pass ${optionName("engine", other.name)}.`,
  });
}

function chosenFailure(error: ClusterError, kind: EngineKind, choice: string): ClusterError {
  const { title } = kind;
  const other = otherThan(kind).title;
  const undo =
    choice === "docker context use" ? "run: docker context use default" : `unset ${choice}`;
  return revised(error, {
    hint: `${title} was chosen (${choice}), so ${other} is not tried. ${hintOf(error) ?? ""} To use another engine, ${undo}, or pass ${optionName("engine")}.`,
    facts: { choice },
  });
}

/** Users may look for the clusters of a skipped engine that is on this machine, so they get a note about it. */
function reportFailure(error: ClusterError, used: EngineKind, { progress }: EngineWork): void {
  const text = `${messageOf(error)} Using ${used.title}.`;
  if (isPresent(error)) progress.note(text);
  else progress.detail(1, text);
}

/** Returns the engine of this name; undefined if the program belongs to another one. Throws the errors of `chooseEngine`. */
export async function openOwn(work: EngineWork, name: EngineName): Promise<Engine | undefined> {
  const engine = openEngine(engineKinds[name], `--engine ${name}`, work);
  return (await answers(work, engine)) ? engine : undefined;
}

/** Finds out which engine `docker` belongs to. Root's Podman isn't asked whether it is rootless, which takes half a second. */
async function openNamed(work: EngineWork, name: EngineName): Promise<Engine> {
  const open = (kind: EngineName): Engine =>
    openEngine(engineKinds[kind], `--engine ${name}`, work);
  if ((name === "podman" && ownUserId() === 0) || (await answers(work, open(name))))
    return open(name);
  if (name === "docker") return openNamed(work, "podman");
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
  { environment, progress, signal }: EngineWork,
  engine: Engine,
): Promise<boolean> {
  const { kind } = engine;
  const timer = setTimeout(() => progress.waiting(`waiting for ${kind.title} to answer`), quietMs);
  const asked = askJson(engine, { words: kind.probe, limitMs: probeLimitsMs[kind.name] }, signal);
  const answer = await asked.finally(() => {
    clearTimeout(timer);
    progress.waiting("");
  });
  if (!kind.isOwnAnswer(answer)) {
    assertNotChosen(kind, answer, environment);
    return false;
  }
  if (kind.name === "podman") assertNotConfined(kind, kind.readFacts(answer));
  return true;
}

/** Throws for an engine that the user chose, and that isn't this kind's: no engine of this computer takes its place. */
function assertNotChosen(kind: EngineKind, answer: object, environment: Environment): void {
  const address = engineAddress(kind, environment);
  // Podman's `docker` knows no contexts, but one of an earlier Docker may still be chosen.
  const isAsked = "Server" in answer ? answer.Server !== null : address.startsWith("DOCKER_HOST=");
  if (address === "" || address.includes("=unix://") || !isAsked) return;
  throw new ClusterError("machine-not-set-up", `${address} leads to no ${kind.title}.`, {
    hint: `If it is a Podman, set CONTAINER_HOST to its address, and pass ${optionName("engine", "podman")}.`,
    facts: { command: kind.probe[0] },
  });
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
        .map(({ kind, error }) => `For ${kind.title}: ${hintOf(error) ?? "Try again."}`)
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

/** What the label of a cluster says: each command proves `direct` by the bridge of the cluster's network before it relies on it. */
export const labelledReach = ({ reach }: Pick<Way, "reach">): Reach =>
  reach === "unknown" ? "direct" : reach;

/**
 * Expects nodes at their own addresses only where a network of the engine is proved to be this computer's. Each command uses these addresses only if it also
 * finds the bridge of the cluster's network, and logs in only with the node's key. Throws `machine-not-set-up` if the engine isn't usable.
 */
export async function findReach(
  engine: Engine,
  facts: EngineFacts,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<Way> {
  assertNotConfined(engine.kind, facts);
  assertOwnGroups(engine.kind, facts);
  assertEnoughUsers(engine.kind, facts);
  const { title } = engine.kind;
  const throughEngine = (why: string): Way => ({ reach: "engine", why });
  if (facts.isRootless) return throughEngine(`${title} runs rootless, with a network of its own`);
  if (platform !== "linux" || facts.location === "virtual-machine")
    return throughEngine(`${title} runs in a virtual machine`);
  if (facts.location === "elsewhere") return throughEngine(`${title} runs on another computer`);
  if (facts.location === "service") return throughEngine(`${title} is used through its service`);
  if (facts.location === "here") return { reach: "direct", why: `${title} runs on this computer` };
  const bridges = await randomBridges(engine, signal);
  const own = ownInterfaces();
  const shared = bridges.find((bridge) => own.has(bridge));
  if (shared !== undefined)
    return { reach: "direct", why: `${title}'s bridge ${shared} is on this computer` };
  if (bridges.length > 0) return throughEngine(`${title}'s bridges are not on this computer`);
  return { reach: "unknown", why: `${title} has no network yet that would show where it runs` };
}

/** The bridges that Docker named after the random ids of their networks, so that no other computer has one of that name. */
async function randomBridges(engine: Engine, signal: AbortSignal): Promise<readonly string[]> {
  const custom = ["--filter=type=custom", "--filter=driver=bridge"];
  const words = ["network", "ls", "--quiet", "--no-trunc", ...custom];
  const networks = await describeEach(engine, { words, kind: "network" }, signal);
  return networks.flatMap((network) => {
    const { id, bridge } = engine.kind.readNetwork(network);
    const isRandom = typeof id === "string" && bridge === `br-${id.slice(0, 12)}`;
    return isRandom && /^br-[0-9a-f]{12}$/.test(bridge) ? [bridge] : [];
  });
}

/** Debian's `nobody` has the number 65,534. */
const usualUsers = 65_536;

/** Throws `machine-not-set-up` for a rootless engine whose containers have fewer users than a usual system. */
export function assertEnoughUsers(
  { title, advice }: Pick<EngineKind, "title" | "advice">,
  { userCount }: Pick<EngineFacts, "userCount">,
): void {
  if (userCount === undefined || userCount >= usualUsers) return;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} runs rootless with ${userCount} users and groups for containers, and a node needs ${usualUsers}.`,
    {
      hint: `Give this user ranges in /etc/subuid and /etc/subgid that nobody else has:\n    sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER && ${advice.users}`,
      facts: { users: userCount },
    },
  );
}

const delegation =
  "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload";

/** Throws `machine-not-set-up` for a limit that the engine would ignore or refuse. */
export function assertLimitsWork(
  { title }: Pick<EngineKind, "title">,
  { idleLimits, isRootless }: Pick<EngineFacts, "idleLimits" | "isRootless">,
  limits: Limits,
): void {
  const idle = idleLimits.find((name) => limits[name] !== undefined);
  if (idle === undefined) return;
  const how = isRootless
    ? `delegate its controller to users, then log in again:\n    ${delegation}`
    : `enable its controller: with the kernel's option cgroup_enable=${idle === "cpus" ? "cpu" : idle}, for example.`;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} has no control groups for the limit ${optionName(idle)} here.`,
    { hint: `Use a cluster without ${optionName(idle)}, or ${how}`, facts: { limit: idle } },
  );
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

/** Without its user's systemd, a rootless engine leaves containers in the control group that it runs in itself. */
function assertOwnGroups(
  { title, advice }: EngineKind,
  { isRootless, cgroupManager }: Pick<EngineFacts, "isRootless" | "cgroupManager">,
): void {
  if (!isRootless || cgroupManager === "systemd") return;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} runs rootless without this user's systemd (${outsideLine(cgroupManager) || "no"} control groups), so its containers get no control groups of their own, which the nodes' systemd needs.`,
    { hint: advice.session, facts: { cgroupManager } },
  );
}
