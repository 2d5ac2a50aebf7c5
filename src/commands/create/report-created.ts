import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { ClusterError } from "../../errors.ts";
import { type ClusterRecord, countNodes } from "../../model/cluster-record.ts";
import { durationText, endText, nodesText } from "../../system/amounts.ts";
import { programName, endsByItself, scopeOptions } from "../backend-options.ts";
import { clusterView, nodeView } from "../cluster-view.ts";
import type { CreatedView, JsonResults } from "../json-results.ts";
import { type Row, renderCluster } from "../summary/render-summary.ts";
import { appendSummary } from "../summary/step-summary.ts";
import type { CreateInput } from "./create-options.ts";
import { passedMs } from "../../system/runtime.ts";

interface Created {
  readonly kind: BackendKind;
  readonly cluster: ClusterRecord;
  readonly input: Pick<CreateInput, "wait" | "summary">;
}

/**
 * Prints the new cluster's nodes, end and cost. `happened` describes its state, such as "The
 * installation has started".
 */
export function describeCreated(
  cluster: ClusterRecord,
  happened: string,
  { progress, clock }: Context,
): void {
  const { nodes, expiresAt, maximumCost } = cluster;
  progress.note(`${happened}: ${nodesText(countNodes(nodes))}.`);
  if (expiresAt !== undefined)
    progress.note(`The cluster ends ${endText(expiresAt, clock.now())}.`);
  if (maximumCost === undefined) return;
  progress.note(
    `The cost is at most $${maximumCost.toFixed(2)}; storage, public addresses and licensed images cost extra.`,
  );
}

/** Waits for the new cluster if that was requested, and sets the result, also if the wait fails. */
export async function finishCreated(
  created: Created,
  wait: () => Promise<unknown>,
  context: Context,
): Promise<void> {
  const { kind, cluster, input } = created;
  const commandLine = commandLineFor(kind, cluster.id, input);
  if (!input.wait) return await finish(created, { next: commandLine("wait") }, context);
  const startMs = passedMs(context.clock);
  try {
    await wait();
  } catch (error) {
    context.progress.note(keptNote(kind, { ...cluster, scope: input, error }, context));
    setResult(created, { next: commandLine("logs"), isReady: false }, context);
    throw error;
  }
  const seconds = Math.round((passedMs(context.clock) - startMs) / 1000);
  const ageSeconds = ageOf(cluster, context.clock.now());
  context.progress.note(readyText(cluster.id, seconds, ageSeconds));
  const next = `${commandLine("run")} bash`;
  await finish(created, { next, isReady: true, seconds: ageSeconds ?? seconds }, context);
}

/** Undefined if the creation's time isn't known, or is in the future, because another computer's clock says it. */
export function ageOf(
  { createdAt }: Pick<ClusterRecord, "createdAt">,
  nowMs: number,
): number | undefined {
  const seconds = createdAt && Math.round((nowMs - createdAt.getTime()) / 1000);
  return seconds === undefined || seconds < 0 ? undefined : seconds;
}

export const readyText = (id: string, seconds: number, ageSeconds: number | undefined): string =>
  `Cluster "${id}" is ready after ${durationText(seconds)}${ageSeconds === undefined ? "" : `, ${durationText(ageSeconds)} after its creation`}.`;

interface Outcome {
  /** The command line that users are likely to want now. */
  readonly next: string;
  /** Undefined without `--wait`. */
  readonly isReady?: boolean;
  /** From its creation until it was ready, or else of the wait. */
  readonly seconds?: number;
}

async function finish(created: Created, outcome: Outcome, context: Context): Promise<void> {
  const { next, isReady, seconds } = outcome;
  const rows: readonly Row[] =
    seconds === undefined ? [] : [["Ready after", durationText(seconds)]];
  await summarizeCreated(isReady ? "Cluster ready" : "Cluster created", created, context, rows);
  context.progress.note(`Next: ${next}`);
  setResult(created, outcome, context);
}

export async function summarizeCreated(
  title: string,
  {
    cluster,
    input,
  }: { readonly cluster: ClusterRecord; readonly input: Pick<CreateInput, "summary"> },
  context: Context,
  rows: readonly Row[] = [],
): Promise<void> {
  const phases = phasesOf(context).map((phase) => `${phase.title} ${phase.seconds.toFixed(1)} s`);
  const markdown = renderCluster(
    { title, cluster, more: [...rows, ["Phases", phases.join(", ")]] },
    context.clock.now(),
  );
  await appendSummary(input.summary, markdown, context);
}

function setResult({ cluster }: Created, { next, isReady }: Outcome, context: Context): void {
  const view = clusterView(cluster, context.clock.now());
  context.output.result({
    text: cluster.id,
    data: {
      cluster: { ...view, nodes: cluster.nodes.map(nodeView) },
      phases: phasesOf(context),
      ...(isReady !== undefined && { ready: isReady }),
      next,
    } satisfies JsonResults["create"],
  });
}

const phasesOf = ({ progress }: Context): CreatedView["phases"] =>
  progress.timings().map(({ title, ms }) => ({ title, seconds: Math.round(ms / 100) / 10 }));

interface Kept {
  readonly id: string;
  readonly expiresAt?: Date | undefined;
  /** The options that select its scope, among others. */
  readonly scope: Readonly<Record<string, unknown>>;
  /** Why the wait for the cluster ended. */
  readonly error: unknown;
}

/** Returns the note that a cluster still exists although the command failed or was interrupted, with the next steps. */
export function keptNote(
  kind: BackendKind,
  { id, expiresAt, scope, error }: Kept,
  { clock, signal }: Pick<Context, "clock" | "signal">,
): string {
  const commandLine = commandLineFor(kind, id, scope);
  const end =
    expiresAt === undefined
      ? "by itself, two hours after its creation"
      : endText(expiresAt, clock.now());
  const ends = endsByItself(kind) || expiresAt !== undefined ? [`It ends ${end}.`] : [];
  const canGoOn =
    signal.aborted || (error instanceof ClusterError && error.id === "deadline-passed");
  const wait = canGoOn ? [`    Continue to wait: ${commandLine("wait")}`] : [];
  const removal = endsByItself(kind) ? [] : [`    Remove it: ${commandLine("destroy")}`];
  return [
    `Cluster "${id}" is kept.`,
    ...wait,
    `    Save its logs: ${commandLine("logs")}`,
    ...removal,
    ...ends,
  ].join("\n");
}

const commandLineFor =
  (kind: BackendKind, clusterId: string, input: Readonly<Record<string, unknown>>) =>
  (command: string): string =>
    `${programName(kind)} ${command} --cluster-id ${clusterId}${scopeWords(kind, input)}`;

/** Returns the words that select the scope, with a space before each; none for the default scope. */
export function scopeWords(kind: BackendKind, input: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(scopeOptions(kind)).filter(
    ([name, option]) => input[name] !== undefined && input[name] !== option.default,
  );
  return given.map(([name, option]) => ` ${option.flag} ${String(input[name])}`).join("");
}
