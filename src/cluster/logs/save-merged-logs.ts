import type { Backend, NamedText } from "../../backend/contract.ts";
import { type ClusterRecord, nodeReference } from "../../model/cluster-record.ts";
import { cutLogsSuffix, noLogsSuffix } from "../../platform/node-logs.ts";
import { numbered } from "../../system/amounts.ts";
import { writeNamedFile } from "../../system/files/draft.ts";
import { plainLine } from "../../system/printable.ts";
import type { Work } from "../../system/runtime.ts";
import { openMaskedConnections } from "../connections.ts";
import type { LogLine } from "./log-lines.ts";
import { clockOf, inTurns, mergedLines, partsOf, preciseTime } from "./merged-lines.ts";
import { collectLogs, maskedTexts, nodesLimitMs, silentNodes, warnOfSecrets } from "./save-logs.ts";

interface MergeRequest {
  readonly cluster: ClusterRecord;
  /** Absolute path. It is replaced if it exists. */
  readonly file: string;
  /** Only lines of the last milliseconds; undefined: all. */
  readonly agoMs?: number | undefined;
}

/** What the logs of all nodes together may take in memory, for each kind of log. */
const mostBytesOfAll = 64_000_000;

/**
 * Writes all logs into one file, which only this user can read: ordered by this computer's clock,
 * each line with its node, with secrets masked. Its beginning says what of the logs is missing.
 */
export async function saveMergedLogs(
  work: Work,
  backend: Pick<Backend<unknown>, "consoleOutput">,
  { cluster, file, agoMs }: MergeRequest,
) {
  const { clock, progress } = work;
  using step = progress.start("Collect logs");
  await using connections = openMaskedConnections(cluster, work);
  const mostBytes = Math.ceil(mostBytesOfAll / Math.max(1, cluster.nodes.length));
  const limits = { cluster, connections, limitMs: nodesLimitMs, agoMs, mostBytes };
  const texts = await collectLogs(backend, limits, work.signal);
  work.signal.throwIfAborted();
  const refusal = connections.refusal();
  if (refusal !== undefined) throw refusal;
  const nowMs = clock.now();
  const sinceMs = agoMs === undefined ? -Infinity : nowMs - agoMs;
  const masked = await maskedTexts(texts, work);
  const lines = (await mergedLines(masked, nowMs, work.signal)).filter(
    ({ ms }) => agoMs === undefined || (ms ?? -Infinity) >= sinceMs,
  );
  const clocks = texts.flatMap((each) => clockOf(each) ?? []);
  const width = Math.max(0, ...cluster.nodes.map((node) => nodeReference(node).length));
  const parts = await inTurns(partsOf(lines), work.signal, (part) => [
    part.map((line) => `${lineText(line, width)}\n`).join(""),
  ]);
  const notes = [...clocks.map(clockLine), ...masked.flatMap(lackLine)];
  await writeNamedFile(file, [...notes.map((each) => `${each}\n`), ...parts].join(""));
  step.done(numbered(lines.length, "line"));
  for (const line of silentNodes(texts)) progress.warn(line);
  warnOfSecrets(connections.problem(), texts, progress);
  return { file, lines: lines.length };
}

const clockLine = ({ node, offsetMs }: NonNullable<ReturnType<typeof clockOf>>): string => {
  if (offsetMs === 0) return `# The clock of ${node} is this computer's.`;
  const way = offsetMs > 0 ? "ahead of" : "behind";
  return `# The clock of ${node} is ${Math.abs(offsetMs)} ms ${way} this computer's: its times are corrected by that.`;
};

/** Without it, a node of which little was fetched would look as if it had been silent. */
function lackLine({ name, text }: NamedText): readonly string[] {
  const [node = ""] = name.split(".", 1);
  if (name.endsWith(noLogsSuffix)) return [`# No logs of ${node}: ${plainLine(text)}`];
  if (!name.endsWith(cutLogsSuffix)) return [];
  return [`# Of ${node}, only the end of these logs is here: ${plainLine(text)}.`];
}

function lineText({ ms, node, unit, text }: LogLine, width: number): string {
  const time = ms === undefined ? "-".padEnd(preciseTime(0).length) : preciseTime(ms);
  return `${time} ${node.padEnd(width)} ${unit}: ${text}`;
}
