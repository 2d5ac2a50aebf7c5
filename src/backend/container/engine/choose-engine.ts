import { ClusterError, hintOf, messageOf, revised, assertExpected } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { ownUserId } from "../../../system/own-user.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import { assertNotConfined } from "./assert-usable.ts";
import { isPresent } from "./engine-errors.ts";
import { type EngineKind, type EngineName, engineNames } from "./engine-kind.ts";
import { engineKinds } from "./engine-kinds.ts";
import { type Engine, type EngineWork, askJson, openEngine } from "./engine.ts";
import { choosingVariables, dockerContext, engineAddress } from "./passage.ts";

/**
 * For an engine's first answer, within the limit of all checks of the doctor. On a busy computer, or
 * a translated processor, engines were seen to take 20 s.
 */
const probeLimitMs = 30_000;
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

/**
 * How the user chose this engine; undefined if nothing says so. An engine that was chosen is never
 * replaced by another one.
 */
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

/**
 * Returns the engine of this name; undefined if the program belongs to another one. Throws the
 * errors of `chooseEngine`.
 */
export async function openOwn(work: EngineWork, name: EngineName): Promise<Engine | undefined> {
  const engine = openEngine(engineKinds[name], `--engine ${name}`, work);
  return (await answers(work, engine)) ? engine : undefined;
}

/**
 * Finds out which engine `docker` belongs to. Root's Podman isn't asked whether it is rootless,
 * which takes half a second.
 */
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
  const asked = askJson(engine, { words: kind.probe, limitMs: probeLimitMs }, signal);
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
