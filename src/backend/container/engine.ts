import { ClusterError } from "../../errors.ts";
import { errorCode } from "../../system/error-code.ts";
import type { Progress } from "../../system/progress.ts";
import { type ProgramEnd, runProgram } from "../../system/run-program.ts";
import type { Environment } from "../../system/environment.ts";
import { engineFailure, engineMissing } from "./engine-errors.ts";

/** Questions are answered in milliseconds; under load, in seconds. */
const askLimitMs = 60_000;
const changeLimitMs = 180_000;

interface EngineRequest {
  /** What follows the program's name. Never a secret. */
  readonly words: readonly string[];
  readonly stdin?: Uint8Array;
  /** Whether what went wrong is as good as done, by what the engine said. */
  readonly accepts?: (stderr: string) => boolean;
  /** Called with output as it comes. */
  readonly onOutput?: (chunk: string) => void;
  /** Milliseconds, for what may take longer than usual. */
  readonly limitMs?: number;
}

/** The container engine's command line. Its failures are ClusterErrors; what it prints on stdout comes back without its last newline. */
export interface Engine {
  readonly program: "docker";
  /** Something that makes nothing, or whose half-done work is harmless. */
  ask(request: EngineRequest, signal: AbortSignal): Promise<string>;
  /** Runs to its end, whatever is aborted meanwhile: what it made must be known. */
  change(request: EngineRequest): Promise<string>;
}

export function openEngine({
  environment,
  progress,
}: {
  readonly environment: Environment;
  readonly progress: Progress;
}): Engine {
  const program = "docker";
  const run = async (request: EngineRequest, limitMs: number, signal: AbortSignal): Promise<string> => {
    progress.detail(2, `${program} ${request.words.join(" ")}`);
    const end = await runWithin({ program, request, environment, limitMs: request.limitMs ?? limitMs }, signal);
    if (end.status !== 0 && request.accepts?.(end.stderr) !== true) throw engineFailure(program, request.words, end);
    return end.stdout.trimEnd();
  };
  return {
    program,
    ask: async (request, signal) => run(request, askLimitMs, signal),
    change: async (request) => run(request, changeLimitMs, new AbortController().signal),
  };
}

interface Run {
  readonly program: string;
  readonly request: EngineRequest;
  readonly environment: Environment;
  readonly limitMs: number;
}

async function runWithin({ program, request, environment, limitMs }: Run, signal: AbortSignal): Promise<ProgramEnd> {
  const limit = AbortSignal.timeout(limitMs);
  const { words, stdin, onOutput } = request;
  const run = {
    argv: [program, ...words] as const,
    environment,
    ...(stdin !== undefined && { stdin }),
    ...(onOutput !== undefined && { onOutput }),
  };
  try {
    return await runProgram(run, AbortSignal.any([signal, limit]));
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) throw tooSlow(program, words, limitMs);
    if (errorCode(error) === "ENOENT" || errorCode(error) === "EACCES") throw engineMissing(program, error);
    throw error;
  }
}

function tooSlow(program: string, words: readonly string[], limitMs: number): ClusterError {
  return new ClusterError("deadline-passed", `${program} ${words[0]} took longer than ${limitMs / 1000} s.`, {
    hint: `See whether the engine answers at all: ${program} info`,
    facts: { command: words[0] },
  });
}
