import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { findLastFolder } from "../../cluster/report/find-last-folder.ts";
import { type ReportRequest, writeReport } from "../../cluster/report/make-report.ts";
import { messageOf } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { platformNameOf } from "../../model/parse-values.ts";
import { readEvents } from "../../store/events.ts";
import { version } from "../../version.ts";

interface ClusterReport {
  readonly clusterId: string;
  readonly file: string;
  /** Undefined if the cluster is gone. */
  readonly cluster: ClusterRecord | undefined;
  readonly junit: readonly string[];
  readonly junitSinceMs?: ReportRequest["junitSinceMs"];
  readonly logsFolder?: ReportRequest["logsFolder"];
  readonly result?: { readonly isGood: boolean; readonly text: string };
  /** The command that brings the cluster back as it was, if it was saved. */
  readonly bringBack?: string | undefined;
  /** The value of `--chaos` that repeats its plan of faults. */
  readonly chaos?: string | undefined;
}

/**
 * Writes a report about a cluster or, if that is gone, about its last folder. Throws
 * `cluster-not-found` if there is neither.
 */
export async function writeClusterReport(
  backend: Backend<unknown>,
  given: ClusterReport,
  context: Context,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, clusterId, bringBack, chaos } = given;
  const directory =
    cluster?.directory ?? (await findLastFolder(backend, clusterId, context.environment));
  const lines = (await readEvents(directory)).flatMap((event) =>
    event.kind === "command" ? [event.line] : [],
  );
  const program = context.programName;
  await writeReport({ ...context, signal }, backend, {
    ...given,
    directory,
    facts: [
      ["Cluster", clusterId],
      ["Program", `${program} ${version}`],
      ...(cluster === undefined ? [] : factsOf(cluster)),
      ["Folder", directory],
      ...(chaos === undefined ? [] : [["Chaos", `--chaos ${chaos}`] as const]),
    ],
    commands: [
      ...lines.map((line) => ["Make this cluster again", line] as const),
      ...(bringBack === undefined ? [] : [["Bring it back as it was", bringBack] as const]),
    ],
  });
}

function factsOf(cluster: ClusterRecord): readonly (readonly [string, string])[] {
  const platform = platformNameOf(cluster.platform ?? "");
  const variant = cluster.variant === "none" ? [] : [["Variant", cluster.variant] as const];
  return [
    ["Backend", cluster.backend],
    ...(platform === undefined
      ? variant
      : [["Platform", `${platform.name} ${platform.version}`] as const]),
    ["Distribution", cluster.distribution],
    ["Nodes", String(cluster.nodes.length)],
  ];
}

/**
 * Like `writeClusterReport`, for a command that has another result of its own: it only warns. One
 * that was interrupted before, as by a time limit of a CI system, has its report as well. An
 * interrupt meanwhile ends this without a report.
 */
export async function tryToReport(
  backend: Backend<unknown>,
  given: ClusterReport,
  context: Context,
): Promise<void> {
  const limit = AbortSignal.timeout(limitMs);
  const wasInterrupted = context.signal.aborted;
  const signal = wasInterrupted ? limit : AbortSignal.any([context.signal, limit]);
  try {
    await writeClusterReport(backend, given, context, signal);
    context.progress.note(`The report is in ${given.file}`);
  } catch (error) {
    if (context.signal.aborted && !wasInterrupted) return;
    context.progress.warn(`The report could not be written: ${messageOf(error)}`);
  }
}

/** Until then, the machines wait for their removal. */
const limitMs = 120_000;
