/** Collects what a report says, from the cluster's nodes or, if they are gone, from what its folder holds. */
import { lstat, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, NamedText } from "../../backend/contract.ts";
import { type ClusterRecord, nodeReference } from "../../model/cluster-record.ts";
import type { ClusterEvent } from "../../model/event.ts";
import { mapTexts } from "../../outside-text.ts";
import { cutLogsSuffix, noLogsSuffix } from "../../platform/node-logs.ts";
import { readEvents } from "../../store/events.ts";
import { writeNamedFile } from "../../system/files/draft.ts";
import { readTail } from "../../system/files/read-text.ts";
import { maskedPrintable } from "../../system/printable.ts";
import { withoutPrivateKeys } from "../../system/private-keys.ts";
import type { Work } from "../../system/runtime.ts";
import { openMaskedConnections } from "../connections.ts";
import { recordEvent } from "../events/record-event.ts";
import { collectLogs, maskedTexts, warnOfSecrets } from "../logs/save-logs.ts";
import { mostCases, readCases } from "./read-cases.ts";
import type { LogLine } from "../logs/log-lines.ts";
import { clockOf, logName, mergedLines } from "../logs/merged-lines.ts";
import { notice, telling, windowsOf } from "./notice.ts";
import { type ReportParts, renderReport } from "./render-report.ts";
import { thinner } from "./select-lines.ts";
import { statusText } from "./timeline.ts";

export interface ReportRequest {
  /** Undefined if the cluster is gone. */
  readonly cluster: ClusterRecord | undefined;
  readonly clusterId: string;
  readonly directory: string;
  readonly file: string;
  /** JUnit files of the tests that ran. */
  readonly junit: readonly string[];
  /** Such files that are older tell of other tests; absent: none does. */
  readonly junitSinceMs?: number | undefined;
  /**
   * Where else logs may be: the folder of `--logs-dir`, in which only files that are newer than
   * `sinceMs` are this run's.
   */
  readonly logsFolder?: { readonly path: string; readonly sinceMs: number } | undefined;
  /** How it ended, if the caller knows. */
  readonly result?: { readonly isGood: boolean; readonly text: string } | undefined;
  readonly facts: ReportParts["facts"];
  readonly commands: ReportParts["commands"];
}

const nodesLimitMs = 60_000;
const [tailBytes, xmlBytes] = [2_000_000, 32_000_000];
const [mostFiles, mostLogBytes] = [2000, 128_000_000];

/** Writes the report, which only this user can read. Throws the errors of the file system. */
export async function writeReport(
  work: Work,
  backend: Pick<Backend<unknown>, "consoleOutput">,
  request: ReportRequest,
): Promise<void> {
  const { cluster, directory, file } = request;
  using step = work.progress.start("Write report");
  const texts =
    cluster === undefined ? await savedTexts(request) : await nodeTexts(work, backend, cluster);
  const { result, facts, commands } = request;
  const own = { result, facts, commands };
  // An error may quote what a node printed.
  const shown = mapTexts(own, (text) =>
    maskedPrintable(text, (given) => work.progress.mask(given)),
  ) as typeof own;
  const found = { texts, events: await readEvents(directory), nowMs: work.clock.now() };
  const xml = await Promise.all(request.junit.map(async (name) => readJunit(name, request)));
  const parts = await reportParts({ ...request, ...shown, ...found, xml }, work.signal);
  const cases = parts.cases.map((each) => ({
    ...each,
    name: work.progress.mask(each.name),
    failure: work.progress.mask(each.failure),
  }));
  const output = parts.output.map((line) => work.progress.mask(line));
  await writeNamedFile(file, await renderReport({ ...parts, cases, output }, work.signal));
  step.done();
}

async function readJunit(
  name: string,
  { junit, junitSinceMs = 0 }: Pick<ReportRequest, "junit" | "junitSinceMs">,
): Promise<JunitText> {
  const facts = await stat(name).catch(() => undefined);
  // Unlike the other times, this one is never copied from elsewhere.
  const isOlder = facts !== undefined && facts.ctimeMs < junitSinceMs;
  const text = isOlder ? "" : await readTail(name, Math.ceil(xmlBytes / junit.length));
  return { name, text, isOlder };
}

async function nodeTexts(
  work: Work,
  backend: Pick<Backend<unknown>, "consoleOutput">,
  cluster: ClusterRecord,
): Promise<readonly NamedText[]> {
  const { progress } = work;
  await using connections = openMaskedConnections(cluster, work);
  const limits = { cluster, connections, limitMs: nodesLimitMs };
  const texts = await collectLogs(backend, limits, work.signal);
  const refusal = connections.refusal();
  if (refusal !== undefined) throw refusal;
  warnOfSecrets(connections.problem(), texts, progress);
  for (const { name, text } of texts) {
    const clock = clockOf({ name, text });
    if (clock !== undefined) recordEvent(cluster.directory, { kind: "clock", ...clock }, work);
  }
  return await maskedTexts(texts, work);
}

/** The last logs that a command saved, which are masked. Files that are links or older than the run are not its own. */
async function savedTexts({ directory, logsFolder }: ReportRequest): Promise<readonly NamedText[]> {
  const saved = (await namesIn(directory)).filter((name) => name.startsWith("logs-"));
  const last = saved.at(-1);
  const folders = [
    logsFolder,
    ...(last === undefined ? [] : [{ path: join(directory, last), sinceMs: 0 }]),
    { path: directory, sinceMs: 0 },
  ];
  for (const { path, sinceMs } of folders.filter((each) => each !== undefined)) {
    const texts = await textsIn(path, sinceMs);
    if (texts.length > 0) return texts;
  }
  return [];
}

const namesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch(() => [])).toSorted((a, b) => (a < b ? -1 : 1));

async function textsIn(folder: string, sinceMs: number): Promise<readonly NamedText[]> {
  const files: { readonly name: string; readonly path: string; readonly size: number }[] = [];
  for (const name of (await namesIn(folder)).filter((each) => logName.test(each))) {
    const path = join(folder, name);
    const facts = await lstat(path).catch(() => undefined);
    const isOwn = facts?.isFile() === true && facts.nlink === 1 && facts.mtimeMs >= sinceMs;
    if (isOwn) files.push({ name, path, size: facts.size });
    if (files.length === mostFiles) break;
  }
  const bytes = Math.min(tailBytes, Math.floor(mostLogBytes / Math.max(1, files.length)));
  const texts: NamedText[] = [];
  const collect = collector();
  // One after the other: together, they would take twice their size.
  for (const { name, path, size } of files) {
    const text = await readTail(path, bytes, { noLinks: true });
    texts.push({ name, text: withoutPrivateKeys(text) });
    const [, node = "", kind = ""] = logName.exec(name) ?? [];
    if (size > bytes) texts.push({ name: `${node}${cutLogsSuffix}`, text: kind });
    collect(text.length);
  }
  return texts;
}

interface JunitText extends NamedText {
  readonly isOlder?: boolean;
}

interface Collected extends Omit<ReportRequest, "junit"> {
  readonly texts: readonly NamedText[];
  readonly events: readonly ClusterEvent[];
  readonly nowMs: number;
  /** The JUnit files by their paths. */
  readonly xml: readonly JunitText[];
}

/** Reads everything into what the page shows. Takes time in proportion to the texts. */
export async function reportParts(given: Collected, signal: AbortSignal): Promise<ReportParts> {
  const { cluster, clusterId, texts, nowMs, xml } = given;
  const events = judgedRuns(given.events);
  const nodes = cluster?.nodes.map(nodeReference) ?? nodesOf(texts, events);
  const { lines, dropped } = await linesOf(given, nodes.length, signal);
  const times = events.map(({ at }) => Date.parse(at));
  const span = spanOf(times.length > 0 ? times : lines.flatMap(({ ms }) => ms ?? []), nowMs);
  const run = events.findLast((event) => event.kind === "run");
  const runBegan = events.find((each) => each.kind === "run" && each.course === "begun");
  const result = given.result ?? lastResult(events);
  const startMs = runBegan === undefined ? span.startMs : Date.parse(runBegan.at);
  const cases = xml.map(({ text }) => readCases(text, { startMs, endMs: span.endMs }));
  return {
    title: `Cluster ${clusterId}${result === undefined ? "" : titleOf(result)}`,
    isGood: result?.isGood,
    result: [
      ...(run === undefined
        ? []
        : [`${run.command}\n${run.nodes.join(", ") || "this computer"}: ${statusText(run)}`]),
      ...(result === undefined || result.text === "" ? [] : [result.text]),
    ].join("\n"),
    output: run?.output ?? [],
    facts: given.facts,
    commands: given.commands,
    span,
    nodes,
    events,
    lines,
    dropped,
    windows: windowsOf(events, span.endMs),
    noticed: await noticedIn(lines, { ...given, events }, signal),
    cases: cases.flat(),
    gaps: [
      ...xml.flatMap(({ name, isOlder }, index) => {
        const count = cases[index]?.length ?? 0;
        if (isOlder === true) return [`${name}: it is older than this run`];
        if (count === mostCases) return [`${name}: the test cases after the first ${mostCases}`];
        return count === 0 ? [`${name}: it cannot be read, or has no test cases`] : [];
      }),
      ...texts.flatMap(({ name, text }) => {
        const [node] = name.split(".", 1);
        if (name.endsWith(noLogsSuffix)) return [`${node}: ${text}`];
        return name.endsWith(cutLogsSuffix) ? [`${node}: all but the end of ${text}`] : [];
      }),
    ],
  };
}

type Result = NonNullable<ReportRequest["result"]> & { readonly kind?: string };

const titleOf = ({ isGood, kind }: Result): string =>
  `: ${kind === "run" ? "the last command " : ""}${isGood ? "succeeded" : "failed"}`;

/** How the last command ended, where nothing says how everything did. */
function lastResult(events: readonly ClusterEvent[]): Result | undefined {
  const last = events.findLast(
    (event) => event.kind === "result" || (event.kind === "run" && event.course !== "begun"),
  );
  // A later one that has not ended, as after a crash, may have failed.
  const isOpen = events.findLast(({ kind }) => kind === "run") !== last;
  if (last?.kind === "run" && last.course === "done" && isOpen) return undefined;
  if (last?.kind === "run") return { kind: "run", isGood: last.course === "done", text: "" };
  return last?.kind === "result" ? last : undefined;
}

/**
 * A command that nodes have carried out may fail nevertheless, for what was noticed meanwhile. Its
 * result follows its end.
 */
function judgedRuns(events: readonly ClusterEvent[]): readonly ClusterEvent[] {
  const judged = [...events];
  const last = { index: -1 };
  for (const [index, event] of events.entries()) {
    if (event.kind === "run") last.index = index;
    const run = judged[last.index];
    if (event.kind !== "result" || event.title !== "run" || run?.kind !== "run") continue;
    const text = "but something went wrong on the nodes while it ran";
    judged[last.index] = { ...run, course: "failed", text };
  }
  return judged;
}

/**
 * The lines that the page has a place for. All logs are read twice, because one log says which
 * moments of the others matter.
 */
async function linesOf(given: Collected, nodes: number, signal: AbortSignal) {
  const { texts, nowMs } = given;
  const collect = collector();
  const bytesOf = (lines: readonly LogLine[]): number => lines.length * bytesEach;
  const signs = await mergedLines(texts, nowMs, signal, (lines) => {
    collect(bytesOf(lines));
    return telling(lines);
  });
  const noticed = await noticedIn(signs, given, signal);
  const moments = noticed.flatMap(({ line }) => line.ms ?? []);
  const left = { dropped: 0 };
  const size = texts.reduce((sum, { text }) => sum + text.length, 0);
  const thin = thinner(
    moments,
    size < smallBytes ? 1 : nodes,
    (count) => void (left.dropped += count),
  );
  const lines = await mergedLines(texts, nowMs, signal, (each) => {
    collect(bytesOf(each));
    return thin(each);
  });
  collect(bytesPerCollection);
  return { lines, ...left };
}

/** Of so little, all lines fit into memory, so that one node's may fill the page. */
const smallBytes = 16_000_000;
const [bytesEach, bytesPerCollection] = [200, 6_000_000];

/**
 * Returns what frees memory after so many bytes have been read into it. On a computer with much
 * memory, the engine itself would let hundreds of megabytes gather that nobody uses.
 */
function collector(): (bytes: number) => void {
  const read = { bytes: 0 };
  return (bytes) => {
    read.bytes += bytes;
    if (read.bytes < bytesPerCollection) return;
    read.bytes = 0;
    Bun.gc(true);
  };
}

/** What a command noticed while it watched the nodes and nothing explained, then what the logs add to that. */
async function noticedIn(
  lines: readonly LogLine[],
  { events, nowMs }: Pick<Collected, "events" | "nowMs">,
  signal: AbortSignal,
): Promise<ReportParts["noticed"]> {
  const watched = events.flatMap((event) => {
    if (event.kind !== "noticed" || event.isExplained === true) return [];
    const { at, node, what, text } = event;
    const line = { ms: Date.parse(at), node, unit: "", text };
    return [{ line, what, explanation: undefined }];
  });
  const known = new Set(watched.map(({ line, what }) => `${line.node} ${what}`));
  const isKnown = ({ line, what, explanation }: ReportParts["noticed"][number]): boolean =>
    explanation === undefined && known.has(`${line.node} ${what}`);
  const explained = events.filter(({ kind }) => kind === "noticed");
  const logged = (await notice(lines, windowsOf(events, nowMs), signal))
    .filter((each) => !isKnown(each))
    .map((each) => ({ ...each, explanation: each.explanation ?? ignoringOf(each, explained) }));
  const isOpen = ({ explanation }: ReportParts["noticed"][number]): boolean =>
    explanation === undefined;
  // A cause comes before what follows from it.
  const open = [...watched, ...logged.filter(isOpen)].toSorted(
    (a, b) => (a.line.ms ?? 0) - (b.line.ms ?? 0),
  );
  return [...open, ...logged.filter((each) => !isOpen(each))];
}

const clockSlackMs = 5_000;

/** Why a command that watched the nodes did not count what a line says. */
const ignoringOf = (
  { line, what }: ReportParts["noticed"][number],
  events: readonly ClusterEvent[],
): string | undefined => {
  const found = events.find(
    (event) =>
      event.kind === "noticed" &&
      event.isExplained === true &&
      event.node === line.node &&
      event.what === what &&
      Math.abs(Date.parse(event.at) - (line.ms ?? Infinity)) <= clockSlackMs,
  );
  return found?.kind === "noticed" ? found.explanation : undefined;
};

const nodesOf = (
  texts: readonly NamedText[],
  events: readonly ClusterEvent[],
): readonly string[] => [
  ...new Set([
    ...events.flatMap((event) => (event.kind === "node" ? event.node : [])),
    ...texts.flatMap(({ name }) => logName.exec(name)?.[1] ?? []),
  ]),
];

const marginMs = 1000;

function spanOf(times: readonly number[], nowMs: number) {
  const [first = nowMs, ...others] = times;
  let [startMs, endMs] = [first, first];
  for (const ms of others) {
    startMs = Math.min(startMs, ms);
    endMs = Math.max(endMs, ms);
  }
  return { startMs: startMs - marginMs, endMs: endMs + marginMs };
}
