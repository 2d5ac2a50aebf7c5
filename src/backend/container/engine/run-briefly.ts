import type { EngineKind } from "./engine-kind.ts";

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
