import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { runChaos } from "../../cluster/faults/chaos.ts";
import { type ChaosOptions, chaosPlan, stepText } from "../../cluster/faults/chaos-plan.ts";
import { planFault } from "../../cluster/faults/plan-fault.ts";
import { findCluster } from "../../cluster/find-cluster.ts";
import { durationText, numbered } from "../../system/amounts.ts";
import type { JsonResults } from "../json-results.ts";
import { chaosPairs, valueText } from "./chaos-text.ts";

interface RandomInput {
  readonly clusterId: string;
  /** The words that lead to the cluster's backend; see `scopeWords`. */
  readonly scope: string;
  readonly options: ChaosOptions;
  readonly durationMs: number;
  readonly dryRun: boolean;
}

/** Prints the plan, and begins its faults unless only the plan is wanted. */
export async function executeRandom(
  backend: Backend<unknown>,
  { dryRun, ...input }: RandomInput,
  context: Context,
): Promise<void> {
  const { clusterId, options, durationMs } = input;
  const { output, progress, signal } = context;
  const cluster = await findCluster(backend, clusterId, signal);
  const plan = chaosPlan(cluster, { ...options, durationMs });
  const result = {
    text: [`seed ${options.seed}`, ...plan.map(stepText)].join("\n"),
    data: { seed: options.seed, plan } satisfies JsonResults["fault"],
  };
  if (dryRun) return output.result(result);
  // What a node can't have is refused before anything begins.
  for (const { request } of plan) planFault(cluster, request);
  const length = durationText(durationMs / 1000);
  progress.note(`Seed ${options.seed}: ${numbered(plan.length, "fault")} in ${length}.`);
  using _left = context.onAbandon(
    () => "A fault may be left; the nodes heal it by themselves when its time is over.",
  );
  try {
    await runChaos({ ...context, signal }, backend, { clusterId, options, durationMs });
  } finally {
    progress.note(`Seed ${options.seed}. Repeat this plan: ${repeating(input, context)}`);
  }
  output.result(result);
}

function repeating(
  { clusterId, scope, options, durationMs }: Omit<RandomInput, "dryRun">,
  { programName }: Context,
): string {
  const words = chaosPairs(options).map(([key, text]) =>
    text === "true" ? `--${key}` : `--${key}=${text}`,
  );
  const length = `--for=${valueText("durationMs", durationMs) ?? ""}`;
  const where = `--cluster-id=${clusterId}`;
  return `${[programName, "fault random", length, ...words, where].join(" ")}${scope}`;
}
