import { userInfo } from "node:os";
import { ClusterError } from "../../../errors.ts";
import { askJson, type Engine, type EngineSurroundings, openEngine } from "./engine.ts";
import { rootless } from "./engine-facts.ts";
import { isPresent } from "./engine-errors.ts";
import { type EngineKind, type EngineName, engineNames } from "./engine-kind.ts";
import { engineKinds } from "./engine-kinds.ts";

/** For one that answers at all. The doctor's checks leave time for each engine in turn. */
const probeLimitMs = 8_000;
/** After so long people are told what is waited for. */
const quietMs = 1_500;

/**
 * The engine that was named, or else the first that answers and can serve: Docker, then Podman. A `docker` that is Podman's counts as Podman.
 * Throws `machine-not-set-up`, which says what was tried of each and what to do.
 */
export async function chooseEngine(
  named: EngineName | undefined,
  surroundings: EngineSurroundings,
  signal: AbortSignal,
): Promise<Engine> {
  if (named !== undefined) return openNamed(named, surroundings, signal);
  const failures: Failure[] = [];
  for (const name of engineNames) {
    const kind = engineKinds[name];
    const engine = openEngine(kind, "", surroundings);
    try {
      if (!(await answers(engine, surroundings, signal))) throw notOwn(kind);
      for (const { error } of failures) tellOfFailure(error, kind, surroundings);
      return engine;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ClusterError)) throw error;
      failures.push({ kind, error });
    }
  }
  throw noEngine(failures);
}

/** People may look for clusters of the engine that is left out, if it is on this machine. */
function tellOfFailure(error: ClusterError, used: EngineKind, { progress }: EngineSurroundings): void {
  const text = `${error.message} Using ${used.title}.`;
  if (isPresent(error)) progress.note(text);
  else progress.detail(1, text);
}

/** The engine of this name, and of no other; undefined where the program is another one's. Throws as `chooseEngine` does. */
export async function openOwn(
  name: EngineName,
  surroundings: EngineSurroundings,
  signal: AbortSignal,
): Promise<Engine | undefined> {
  const engine = openEngine(engineKinds[name], `--engine ${name}`, surroundings);
  return (await answers(engine, surroundings, signal)) ? engine : undefined;
}

/** Of `docker` it must be known whose it is. Root's Podman is not asked whether it runs without root, which takes it half a second. */
async function openNamed(name: EngineName, surroundings: EngineSurroundings, signal: AbortSignal): Promise<Engine> {
  const open = (kind: EngineName): Engine => openEngine(engineKinds[kind], `--engine ${name}`, surroundings);
  if ((name === "podman" && isRoot()) || (await answers(open(name), surroundings, signal))) return open(name);
  if (name === "docker") return openNamed("podman", surroundings, signal);
  throw notOwn(engineKinds[name]);
}

function notOwn({ name, title, advice }: EngineKind): ClusterError {
  return new ClusterError("machine-not-set-up", `The program ${name} on the PATH is not ${title}'s.`, {
    hint: advice.install,
    facts: { program: name },
  });
}

function isRoot(): boolean {
  try {
    return userInfo().uid === 0;
  } catch {
    // Node's knows users with a name only.
    return false;
  }
}

/** False for a program that is another engine's. Throws as the engine's commands do, and for a Podman without root, which never serves. */
async function answers(
  engine: Engine,
  { progress }: Pick<EngineSurroundings, "progress">,
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
    `Neither Docker nor Podman can be used here. ${failures.map(({ error }) => error.message).join(" ")}`,
    {
      hint: failures.map(({ kind, error }) => `For ${kind.title}: ${error.hint ?? "try again."}`).join("\n"),
      facts: { tried: engineNames },
      cause: failures[0]?.error,
    },
  );
}
