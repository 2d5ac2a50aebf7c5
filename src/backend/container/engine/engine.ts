import { ClusterError } from "../../../errors.ts";
import { field, list, string, withDefault } from "../../../model/reader.ts";
import { outside } from "../../../outside-text.ts";
import { formatDuration } from "../../../system/amounts.ts";
import type { TemporaryFolder } from "../../../system/files/private-file.ts";
import { ownedFolder } from "../../../system/files/owned-folder.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import {
  type DeferredCommand,
  type ProgramEnd,
  type ProgramRun,
  deferCommand,
  environmentWithoutSecrets,
  readProgram,
  runOrMissing,
  runWithin,
} from "../../../system/processes/run-program.ts";
import { outsideLine, outsideLines } from "../../../system/printable.ts";
import type { Environment, Runtime, Work } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import { watchdog, whileWaitingFor } from "../../../system/time-limit.ts";
import { engineFailure, engineMissing } from "./engine-errors.ts";
import { byHand } from "./connection-failure.ts";
import type { EngineFacts, EngineKind } from "./engine-kind.ts";
import { engineAddress } from "./passage.ts";

/** Questions are answered in milliseconds, or in seconds under load. */
const askLimitMs = 60_000;
const changeLimitMs = 180_000;
/** For the images of a large cluster on a slow disk. */
const readLimitMs = 60 * 60_000;

interface EngineRequest extends Pick<ProgramRun, "stdin" | "onOutput" | "keptCharacters"> {
  /** The arguments after the program's name. They never hold a secret. */
  readonly words: readonly string[];
  /** Whether the engine's message shows that the failure counts as success. */
  readonly accepts?: (stderr: string) => boolean;
  /** Milliseconds, for commands that may take longer than usual. */
  readonly limitMs?: number;
  /** For a command that prints what it does: it may take any time, but not be silent for so long. */
  readonly silence?: Silence;
}

interface Silence {
  readonly limitMs: number;
  /** The file with the output so far, if there is one. */
  readonly log: () => string | undefined;
}

/** The engine's command line. Its methods return stdout without the trailing newline, and throw ClusterErrors. */
export interface Engine {
  readonly kind: EngineKind;
  /**
   * The option that a command shown to people needs to reach this engine; empty if the engine would
   * be chosen without it.
   */
  readonly option: string;
  /** Runs a command that creates nothing, or whose half-done work is harmless. */
  ask(request: EngineRequest, signal: AbortSignal): Promise<string>;
  /** Runs to completion, even if something is aborted meanwhile, because its result must be known. */
  change(request: EngineRequest): Promise<string>;
  /** Yields what a command prints, which may be gigabytes. It ends when nobody reads on. */
  read(words: readonly string[], signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined>;
  /** Prepares a command that undoes something. It runs on request, or when this process dies before that. */
  defer(words: readonly string[]): Promise<DeferredCommand>;
}

/** Like `ask`, for JSON. Throws `machine-not-set-up` for any other answer, such as a wrapper's greeting. */
export async function askJson(
  engine: Engine,
  request: EngineRequest,
  signal: AbortSignal,
): Promise<object> {
  const text = await engine.ask(request, signal);
  const answer = parseJson(text);
  if (typeof answer === "object" && answer !== null) return answer;
  const { name, title, advice } = engine.kind;
  const command = `${name} ${request.words[0]}`;
  const shown = outsideLine(text, 100);
  throw new ClusterError(
    "machine-not-set-up",
    `The output of "${command}" is not that of ${title}: "${shown}".`,
    {
      hint: `Check which ${name} comes first on the PATH: command -v ${name}. ${advice.install}`,
      facts: { command: request.words[0] },
    },
  );
}

export const removalCommand = ({ option }: Pick<Engine, "option">, clusterId: string): string =>
  ["cluster-container destroy --cluster-id", clusterId, option]
    .filter((word) => word !== "")
    .join(" ");

/** The parts of the runtime that an engine uses. */
export type EngineWork = Pick<Work, "environment" | "progress" | "signal">;

/** The engine would look for a missing image in a registry, such as a server on this computer for one of ours. */
const withoutPulling = ([command = "", ...others]: readonly string[]): readonly string[] =>
  command === "create" || command === "run"
    ? [command, "--pull=never", ...others]
    : [command, ...others];

/** Doesn't run any command yet. `option`: see Engine. */
export function openEngine(
  kind: EngineKind,
  option: string,
  { environment, progress }: Pick<Runtime, "environment" | "progress">,
): Engine {
  const programOf = (words: readonly string[], folder?: TemporaryFolder) => {
    const own = folder && { TMPDIR: folder.path };
    const all = withoutPulling(words);
    progress.detail(2, `${kind.name} ${outside(all.join(" "))}`);
    const given = environmentFor(kind, environment, words);
    return { argv: [kind.name, ...all] as const, environment: { ...given, ...own } };
  };
  const run = async (
    request: EngineRequest,
    usualLimitMs: number,
    signal: AbortSignal,
  ): Promise<string> => {
    const { words, accepts, silence, limitMs = usualLimitMs, ...others } = request;
    const limits = {
      limitMs,
      tooSlow: () => tooSlow(kind, words, limitMs, environment),
      missing: (cause: unknown) => engineMissing(kind, cause),
    };
    await using folder =
      others.stdin === undefined ? undefined : await folderToLitter(kind, environment);
    const program = { ...programOf(words, folder), ...others };
    const seen = { chunk: "" };
    const end = await whileWaitingFor(
      () => `${kind.name} ${words[0]}${soFar(seen.chunk, silence)}`,
      async () =>
        silence === undefined
          ? runWithin(program, limits, signal)
          : runUntilSilent(program, { silence, seen, ...limits }, signal),
      signal,
    );
    if (end.status !== 0 && accepts?.(end.stderr) !== true) throw engineFailure(kind, words, end);
    return end.stdout.trimEnd();
  };
  return {
    kind,
    option,
    ask: async (request, signal) => run(request, askLimitMs, signal),
    change: async (request) => run(request, changeLimitMs, new AbortController().signal),
    read: async function* (words, signal) {
      await using folder = await folderToLitter(kind, environment);
      const program = programOf(words, folder);
      const limit = AbortSignal.timeout(readLimitMs);
      try {
        const end = yield* readProgram(program, AbortSignal.any([signal, limit]));
        if (end.status !== 0) throw engineFailure(kind, words, end);
      } catch (error) {
        if (!signal.aborted && limit.aborted) throw tooSlow(kind, words, readLimitMs, environment);
        throw error;
      }
    },
    defer: (words) =>
      deferCommand([kind.name, ...words], environmentFor(kind, environment, words), changeLimitMs),
  };
}

/** A folder for a command that would leave files in the usual one. */
async function folderToLitter(
  { litteredFolder }: EngineKind,
  environment: Environment,
): Promise<TemporaryFolder | undefined> {
  if (litteredFolder === undefined) return undefined;
  return await ownedFolder(variable(environment, "TMPDIR") ?? litteredFolder).catch(
    () => undefined,
  );
}

function environmentFor(
  { variables }: EngineKind,
  environment: Environment,
  [command = ""]: readonly string[],
): Environment {
  const given = Object.entries(variables).map(([name, use]): [string, string | undefined] =>
    typeof use === "string"
      ? [name, use]
      : [name, use.includes(command) ? variable(environment, name) : undefined],
  );
  const all = { ...environmentWithoutSecrets(environment), ...Object.fromEntries(given) };
  // An empty one counts as unset, but not for Podman, and not for each version of Docker.
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
}

interface Watched {
  readonly silence: Silence;
  /** The last output that isn't blank. */
  readonly seen: { chunk: string };
  readonly missing: (cause: unknown) => Error;
}

async function runUntilSilent(
  program: ProgramRun,
  { silence, seen, missing }: Watched,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  using dog = watchdog(silence.limitMs, signal);
  const onOutput = (chunk: string): void => {
    dog.feed();
    if (chunk.trim() !== "") seen.chunk = chunk;
    program.onOutput?.(chunk);
  };
  try {
    return await runOrMissing({ ...program, onOutput }, missing, dog.signal);
  } catch (error) {
    if (!dog.hasExpired()) throw error;
    const [name, command] = program.argv;
    const silent = `${name} ${command} printed nothing for ${formatDuration(silence.limitMs)}`;
    throw new ClusterError("deadline-passed", `${silent}${soFar(seen.chunk, silence)}.`, {
      hint: "Find out what it waits for, such as a server for packages, then try again.",
      facts: { command, log: silence.log() },
    });
  }
}

/** Continues the name of a command, or a clause about it. */
function soFar(chunk: string, silence: Silence | undefined): string {
  if (silence === undefined) return "";
  const [line] = outsideLines(chunk, 1, 100);
  const path = silence.log();
  const last = line === undefined ? "no output so far" : `last output: "${line}"`;
  return ` (${last}${path === undefined ? "" : `; all of it: ${path}`})`;
}

function tooSlow(
  kind: EngineKind,
  words: readonly string[],
  limitMs: number,
  environment: Environment,
): ClusterError {
  const { name, title } = kind;
  const address = engineAddress(kind, environment);
  // What a context leads over isn't known here.
  const way = address.includes("=ssh://") ? "is" : address.includes("://") ? "" : "may be";
  return new ClusterError(
    "deadline-passed",
    `${name} ${words[0]} exceeded its limit of ${limitMs / 1000} s.`,
    {
      hint:
        `Run ${name} info to see whether the engine answers.` +
        (address === "" || way === ""
          ? ""
          : ` ${title} ${way} reached over SSH (${address}): ${byHand}`),
      facts: { command: words[0] },
    },
  );
}

export async function readEngineFacts(engine: Engine, signal: AbortSignal): Promise<EngineFacts> {
  const words = ["info", "--format={{json .}}"];
  const answer = await askJson(engine, { words }, signal);
  const errors = serverErrors(answer);
  if (errors.length === 0) return engine.kind.readFacts(answer);
  throw engineFailure(engine.kind, words, { status: 0, stdout: "", stderr: errors.join("\n") });
}

/** Why Docker's daemon, or a proxy in front of it, has told nothing: the command succeeds nevertheless. */
const serverErrors = withDefault(field("ServerErrors", list(string)), []);
