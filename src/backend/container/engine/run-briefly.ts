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

/**
 * Runs a program that only looks. An abort leaves it some time to end: an engine that was just
 * making the container would keep it, and nobody could find it.
 */
export async function lookBriefly(
  { kind, ask }: Pick<Engine, "kind" | "ask">,
  look: BriefRun,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const late = new AbortController();
  using _ = afterAbort(signal, graceMs, () => late.abort(signal.reason));
  const seen = await runBriefly(kind, look, async (words) => ask({ words }, late.signal));
  signal.throwIfAborted();
  return seen;
}
