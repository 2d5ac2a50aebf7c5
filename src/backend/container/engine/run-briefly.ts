import { afterAbort } from "../../../system/time-limit.ts";
import type { EngineKind } from "./engine-kind.ts";
import type { Engine } from "./engine.ts";

export interface BriefRun {
  readonly image: string;
  /** Options of the container. */
  readonly options: readonly string[];
  readonly argv: readonly [program: string, ...words: string[]];
}

/**
 * Runs a program in a container without a network, and resolves with what it prints. The container
 * is made as nodes are: Podman's own limit of processes needs a controller that a rootless one may
 * lack.
 */
export async function runBriefly(
  { systemWords }: Pick<EngineKind, "systemWords">,
  { image, options, argv: [program, ...words] }: BriefRun,
  runEngine: (words: readonly string[]) => Promise<string>,
): Promise<string> {
  const made = ["--rm", ...systemWords, ...options, "--network=none", `--entrypoint=${program}`];
  const run = ["run", ...made, image, ...words];
  // On a busy machine, Podman loses the output of a container that ends at once.
  return (await runEngine(run)) || runEngine(run);
}

/** Usually, a look takes a tenth. */
const graceMs = 5_000;

/** Runs a program that only looks. See `untilLate`. */
export const lookBriefly = async (
  { kind, ask }: Pick<Engine, "kind" | "ask">,
  look: BriefRun,
  signal: AbortSignal,
): Promise<string> =>
  untilLate(async (late) => runBriefly(kind, look, async (words) => ask({ words }, late)), signal);

/**
 * Runs a task with containers that only look. An abort leaves it some time to end: an engine that
 * was just making a container would keep it, and nobody could find it. The task's own signal aborts
 * after that time.
 */
export async function untilLate<Result>(
  task: (late: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  signal.throwIfAborted();
  const late = new AbortController();
  using _ = afterAbort(signal, graceMs, () => late.abort(signal.reason));
  const result = await task(late.signal);
  signal.throwIfAborted();
  return result;
}
