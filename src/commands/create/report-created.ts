import type { Context } from "../../cli/command.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { placeOptions, programName } from "../backend-options.ts";
import { clusterView, durationText, nodeView, numbered } from "../cluster-view.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { renderCluster } from "../summary/render-summary.ts";
import { appendSummary } from "../summary/step-summary.ts";
import type { CreateInput } from "./create-options.ts";

type Created = Pick<CreateInput, "wait" | "summary">;

/** Prints the result of a creation. `happened` says what the nodes do now, such as "The installation has started". */
export function reportCreated(
  cluster: ClusterRecord,
  { kind, input, happened }: { readonly kind: BackendKind; readonly input: Created; readonly happened: string },
  { output, progress, clock }: Context,
): void {
  const facts = clusterView(cluster, clock.now());
  const { masters, agents, publicAgents } = facts.counts;
  progress.note(
    `${happened}: ${numbered(masters, "master")}, ${numbered(agents, "agent")}, ${numbered(publicAgents, "public agent")}.`,
  );
  if (facts.secondsLeft !== undefined)
    progress.note(`The machines terminate automatically in ${durationText(facts.secondsLeft)}, at ${facts.expiresAt}.`);
  if (facts.maximumCostDollars !== undefined) {
    progress.note(
      `The cost is at most $${facts.maximumCostDollars.toFixed(2)}; storage, public addresses and licensed images cost extra.`,
    );
  }
  const phases = progress.timings().map(({ title, ms }) => ({ title, seconds: Math.round(ms / 100) / 10 }));
  progress.note(`Phases: ${phases.map(({ title, seconds }) => `${title} ${seconds.toFixed(1)} s`).join(", ")}.`);
  const next = `${programName(kind)} wait --cluster-id ${cluster.id}${placeWords(kind, input)}`;
  if (!input.wait) progress.note(`Next: ${next}`);
  output.result({
    text: cluster.id,
    data: { cluster: { ...facts, nodes: cluster.nodes.map(nodeView) }, phases, next },
  });
}

/** The options that name the place, unless it is the default one. */
function placeWords(kind: BackendKind, input: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(placeOptions(kind)).filter(
    ([name, option]) => input[name] !== undefined && input[name] !== option.default,
  );
  return given.map(([name, option]) => ` ${option.flag} ${String(input[name])}`).join("");
}

/** Appends a created cluster to the summary, if one is wanted. */
export async function summarizeCreated(
  title: string,
  { cluster, input }: { readonly cluster: ClusterRecord; readonly input: Created },
  context: Context,
): Promise<void> {
  const phases = context.progress.timings().map(({ title: phase, ms }) => `${phase} ${(ms / 1000).toFixed(1)} s`);
  const markdown = renderCluster(title, clusterView(cluster, context.clock.now()), [["Phases", phases.join(", ")]]);
  await appendSummary(input.summary, markdown, context);
}
