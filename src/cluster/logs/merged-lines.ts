/** Reads the logs of all nodes into lines in the order of this computer's clock. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { NamedText } from "../../backend/contract.ts";
import { isNoteOnLogs, readClock } from "../../platform/node-logs.ts";
import { type LogLine, readLines } from "./log-lines.ts";

/** A node's reference and the kind of text. No file that the program keeps in a cluster's folder matches it. */
export const logName = /^([a-z]+(?:_[a-z]+)?_\d+)\.([a-z-]+(?:\.[a-z-]+)*)$/;
const clockName = /^([a-z_]+_\d+)\.clock\.txt$/;

/** Returns undefined for another text, and for a clock that can't be right. */
export function clockOf({ name, text }: NamedText) {
  const [, node] = clockName.exec(name) ?? [];
  const offsetMs = readClock(text);
  return node === undefined || offsetMs === undefined ? undefined : { node, offsetMs };
}

/**
 * Takes time in proportion to the texts, apart from the sorting; after each log, an interrupt gets
 * its turn. Lines without a time come first. What other logs repeat of a journal is dropped.
 * `select` gets the lines of one log after the other.
 */
export async function mergedLines(
  texts: readonly NamedText[],
  nowMs: number,
  signal: AbortSignal,
  select: (lines: readonly LogLine[]) => readonly LogLine[] = (lines) => lines,
): Promise<readonly LogLine[]> {
  const ahead = new Map(
    texts
      .flatMap((each) => clockOf(each) ?? [])
      .map(({ node, offsetMs }) => [node, offsetMs] as const),
  );
  const logs = await inTurns(texts, signal, (each) => {
    const [, node = "", kind = ""] = logName.exec(each.name) ?? [];
    if (kind === "" || clockName.test(each.name) || isNoteOnLogs(each.name)) return [];
    const given = { node, name: kind, text: each.text };
    const lines = readLines(given, { aheadMs: ahead.get(node) ?? 0, nowMs });
    return [{ node, kind, lines: select(lines) }];
  });
  const merged = await inTurns(logs, signal, ({ node, kind, lines }) => {
    if (!partsOfJournals.has(kind)) return lines;
    const journal = logs.find((each) => each.node === node && each.kind === "journal.txt");
    // One node's at a time: those of all nodes would take as much memory as the logs.
    const known = new Set(journal?.lines.map(lineKey));
    return lines.filter((line) => !known.has(lineKey(line)));
  });
  return merged.toSorted((a, b) => (a.ms ?? 0) - (b.ms ?? 0));
}

const linesAtOnce = 20_000;

/** So many lines that no interrupt waits long for the end of one part. */
export function* partsOf(lines: readonly LogLine[]): Generator<readonly LogLine[]> {
  for (let from = 0; from < lines.length; from += linesAtOnce)
    yield lines.slice(from, from + linesAtOnce);
}

/** Like `flatMap`; after each item, an interrupt gets its turn. */
export async function inTurns<Item, Result>(
  items: Iterable<Item>,
  signal: AbortSignal,
  task: (item: Item) => readonly Result[],
): Promise<readonly Result[]> {
  const results: (readonly Result[])[] = [];
  for (const item of items) {
    await nextTurn();
    signal.throwIfAborted();
    results.push(task(item));
  }
  return results.flat();
}

const partsOfJournals: ReadonlySet<string> = new Set(["kernel.txt", "platform-units.txt"]);
const lineKey = ({ ms, text }: LogLine): string => `${ms} ${text}`;

/** `2026-11-29T06:53:37.123456Z`, for a time with microseconds behind the point. */
export function preciseTime(ms: number): string {
  const micros = Math.round(ms * 1000);
  const whole = new Date(Math.floor(micros / 1000)).toISOString().slice(0, -1);
  return `${whole}${String(micros % 1000).padStart(3, "0")}Z`;
}
