import { numbered } from "../../system/amounts.ts";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, NamedText } from "../../backend/contract.ts";
import { ClusterError, messageOf } from "../../errors.ts";
import { type ClusterRecord, nodeReference } from "../../model/cluster-record.ts";
import { TooManySecrets, hideSecrets } from "../../platform/cluster-secrets.ts";
import { type LogsLimits, collectNodeLogs, noLogsSuffix } from "../../platform/node-logs.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { writePrivateFileIn } from "../../system/files/private-file.ts";
import { maskedPrintable, outsideLine } from "../../system/printable.ts";
import { withoutPrivateKeys } from "../../system/private-keys.ts";
import type { Progress, Work } from "../../system/runtime.ts";
import { watchdog } from "../../system/time-limit.ts";
import { openMaskedConnections, secretsWarning } from "../connections.ts";
import { inTurns, logName } from "./merged-lines.ts";

interface LogsRequest {
  readonly cluster: ClusterRecord;
  /** Undefined: a new folder in the cluster's state folder, named after the time. */
  readonly folder: string | undefined;
  /** Only the journals' lines of the last milliseconds; undefined: all. */
  readonly agoMs?: number | undefined;
}

export interface SavedLogs {
  /** Absolute path. */
  readonly folder: string;
  readonly files: readonly string[];
}

/** Time limit for all nodes together. */
export const nodesLimitMs = 120_000;

/**
 * Saves all logs of a cluster as files that only this user can read, with secrets masked. Skips
 * logs that it can't get.
 */
export async function saveLogs(
  work: Work,
  backend: Pick<Backend<unknown>, "consoleOutput">,
  { cluster, folder: chosen, agoMs }: LogsRequest,
): Promise<SavedLogs> {
  const { clock, progress } = work;
  const stamp = new Date(clock.now()).toISOString().replace(/[:.]/g, "-");
  const folder = chosen ?? join(cluster.directory, `logs-${stamp}`);
  await makeLogsFolder(folder);
  using step = progress.start("Collect logs");
  await using connections = openMaskedConnections(cluster, work);
  const texts = await collectLogs(
    backend,
    { cluster, connections, limitMs: nodesLimitMs, agoMs },
    work.signal,
  );
  work.signal.throwIfAborted();
  const refusal = connections.refusal();
  if (refusal !== undefined) throw refusal;
  const files = await saveTexts(folder, texts, progress);
  step.done(numbered(files.length, "file"));
  for (const line of silentNodes(texts)) progress.warn(line);
  warnOfSecrets(connections.problem(), texts, progress);
  return { folder, files };
}

export function warnOfSecrets(
  problem: string | undefined,
  texts: readonly NamedText[],
  progress: Progress,
): void {
  if (problem !== undefined && texts.some(({ name }) => !name.endsWith(noLogsSuffix)))
    progress.warn(secretsWarning("these logs", problem));
}

/**
 * An existing folder keeps its mode, because it may be a shared one such as /tmp. The files are
 * readable by this user alone in any case.
 */
export async function makeLogsFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = messageOf(error);
    throw new ClusterError("bad-usage", `Cannot save logs in ${folder}: ${reason}.`, {
      hint: "Pass a folder that exists or that this user can create.",
      facts: { folder },
      cause: error,
    });
  }
}

/** Nodes whose logs could not be read, one line for each reason. */
export function silentNodes(texts: readonly NamedText[]): readonly string[] {
  const silent = texts.filter(({ name }) => name.endsWith(noLogsSuffix));
  const byReason = Map.groupBy(silent, ({ text }) => text.trim());
  return [...byReason].map(([reason, group]) => {
    const nodes = group.map(({ name }) => name.slice(0, -noLogsSuffix.length));
    return `no logs from ${nodes.join(", ")}: ${reason}`;
  });
}

/**
 * Collects every log of a cluster's machines, from the backend and from the nodes that answer. Never throws: after an
 * abort, it returns what it already has.
 */
export async function collectLogs(
  backend: Pick<Backend<unknown>, "consoleOutput">,
  { cluster, connections, ...limits }: Omit<FailureLogsRequest, "directory"> & LogsLimits,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const gathered = await Promise.allSettled([
    backend.consoleOutput(cluster, signal),
    collectNodeLogs(cluster, connections, limits, signal),
  ]);
  return gathered.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value : []));
}

interface FailureLogsRequest {
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
  /** The creation's folder, where the files go. */
  readonly directory: string;
}

/** The time limit for the nodes' logs, within that for all failure logs. */
const failureLimitMs = 15_000;

/** Saves logs that explain why a creation failed. Skips logs that it can't get, and never throws. */
export async function saveFailureLogs(
  { progress, signal }: Pick<Work, "progress" | "signal">,
  backend: Pick<Backend<unknown>, "consoleOutput">,
  { cluster, connections, directory }: FailureLogsRequest,
): Promise<void> {
  using step = progress.start("Save failure logs");
  using limit = watchdog(failureLimitMs, signal);
  const [texts, problem] = await Promise.all([
    collectLogs(backend, { cluster, connections, limitMs: failureLimitMs }, signal),
    tryToHideSecrets({ cluster, connections }, progress, limit.signal),
  ]);
  if (problem instanceof TooManySecrets)
    return progress.warn(`the nodes' logs were not saved: ${messageOf(problem)}`);
  const files = await saveTexts(directory, texts, progress).catch((error: unknown) => {
    progress.warn(`the nodes' logs were not saved: ${messageOf(error)}`);
    return [];
  });
  step.done();
  if (files.length > 0) progress.note(`The nodes' logs are in ${directory}`);
  const isInstalling = texts.some(({ name }) => installationLog.test(name));
  if (problem !== undefined && isInstalling) warnOfSecrets(messageOf(problem), texts, progress);
}

/** Until a node has such a log, the platform has created no secrets that logs could show. */
const installationLog = /\.(?:install|genconf)\.log$/;

/**
 * Resolves with the failure. Before the installation, the cluster has no secrets of its own, and
 * perhaps no first master.
 */
async function tryToHideSecrets(
  { cluster, connections }: Pick<FailureLogsRequest, "cluster" | "connections">,
  progress: Progress,
  signal: AbortSignal,
): Promise<unknown> {
  const master = cluster.nodes.find(
    (node) => nodeReference(node) === "master_0" && node.ssh.host !== "",
  );
  if (master === undefined) return undefined;
  try {
    await hideSecrets({ progress, signal }, await connections.connect(master, signal));
    return undefined;
  } catch (error) {
    return error;
  }
}

/** How logs may be shown or saved: with hidden values masked, printable, and without private keys. */
export const maskedTexts = async (
  texts: readonly NamedText[],
  { progress, signal }: Pick<Work, "progress" | "signal">,
): Promise<readonly NamedText[]> =>
  inTurns(texts, signal, ({ name, text }) => [{ name, text: masked(text, progress) }]);

const masked = (text: string, progress: Pick<Progress, "mask">): string =>
  withoutPrivateKeys(maskedPrintable(text, (given) => progress.mask(given)));

/**
 * Writes texts from nodes into a folder as files that only this user can read, with hidden values
 * masked and no terminal control characters. This is the only way such texts reach the disk: a text
 * whose name isn't a log's is skipped. Returns the names of the files.
 */
async function saveTexts(
  folder: string,
  texts: readonly NamedText[],
  progress: Progress,
): Promise<readonly string[]> {
  const saved: string[] = [];
  for (const { name, text } of texts) {
    if (logName.test(name)) {
      await writePrivateFileIn(folder, name, masked(text, progress));
      saved.push(name);
    } else
      progress.warn(
        `a log was not saved: "${outsideLine(name, 100)}" is not a valid name for a log`,
      );
  }
  return saved;
}
