/** Reads lines of logs with their times, whatever wrote them. Every line is bounded before an expression sees it. */
import { plainLine } from "../../system/printable.ts";

export interface LogLine {
  /**
   * Milliseconds since 1970 by this computer's clock, with microseconds behind the point; undefined
   * if nothing says when.
   */
  readonly ms: number | undefined;
  readonly node: string;
  /** A unit or program of the journal, or the name of another log. */
  readonly unit: string;
  readonly text: string;
}

interface NodeText {
  readonly node: string;
  /** Such as `journal.txt` or `install.log`. */
  readonly name: string;
  readonly text: string;
}

const longestLine = 1000;
const longestUnit = 60;
const mostLines = 100_000;
const mostUnits = 1000;

/** The rest of a line may hold other line breaks, such as a carriage return. */
const unixTime = /^(\d{9,11}\.\d{3,6})\d{0,3} (.*)$/s;
const isoTime =
  /^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d{0,3})?(Z|[+-]\d\d:?\d\d)? (.*)$/s;
const syslogTime = /^([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.\d{1,9})? (.*)$/s;
/** The host, the program and its message. */
const journalLine = /^\S{1,255} ([^\s:[\]]{1,200})(?:\[\d{1,10}\])?: ?(.*)$/s;
const [earliestMs, latestMs] = [Date.UTC(2000), Date.UTC(2100)];

interface Reading {
  /** By how many milliseconds the node's clock is ahead of this computer's. */
  readonly aheadMs: number;
  /** The year of times that have none is that of this moment, or the one before. */
  readonly nowMs: number;
}

/** Returns the last lines of a log. A line without a time follows the one before it. Takes linear time. */
export function readLines(given: NodeText, { aheadMs, nowMs }: Reading): readonly LogLine[] {
  const { node, name } = given;
  const isJournal = /journal|units|kernel/.test(name);
  const own = name.replace(/\.(?:log|txt)$/, "");
  const lines: LogLine[] = [];
  let [lastMs, lastUnit]: [number | undefined, string] = [undefined, own];
  // Most lines come from few units: a million lines share their names.
  const units = new Map<string, string>();
  const unitOf = (unit: string): string => {
    const found = units.get(unit) ?? plainLine(unit, longestUnit);
    if (units.size < mostUnits) units.set(unit, found);
    return found;
  };
  for (const raw of lastLines(given.text, mostLines)) {
    const line = raw.slice(0, 2 * longestLine);
    if (line.trim() === "") continue;
    const timed = timeOf(line, nowMs);
    if (timed !== undefined) lastMs = timed.ms - aheadMs;
    const rest = timed?.rest ?? line;
    const [, unit, text] = (isJournal && timed !== undefined && journalLine.exec(rest)) || [];
    lastUnit = timed === undefined ? lastUnit : unitOf(unit ?? own);
    lines.push({ ms: lastMs, node, unit: lastUnit, text: plainLine(text ?? rest, longestLine) });
  }
  return lines;
}

function* lastLines(text: string, most: number): Generator<string> {
  let start = text.length;
  for (let count = 0; count <= most && start > 0; count += 1)
    start = text.lastIndexOf("\n", start - 1);
  for (let position = start <= 0 ? 0 : start + 1; position < text.length;) {
    const end = text.indexOf("\n", position);
    const stop = end < 0 ? text.length : end;
    yield text.slice(position, stop);
    position = stop + 1;
  }
}

/** The time of a line, by the node's clock, and the rest of it. */
function timeOf(line: string, nowMs: number) {
  const timed = unixTimeOf(line) ?? isoTimeOf(line) ?? syslogTimeOf(line, nowMs);
  return timed !== undefined && timed.ms >= earliestMs && timed.ms <= latestMs ? timed : undefined;
}

function unixTimeOf(line: string) {
  const [, seconds, rest] = unixTime.exec(line) ?? [];
  return rest === undefined ? undefined : { ms: Number(seconds) * 1000, rest };
}

function isoTimeOf(line: string) {
  const [, date = "", fraction = "0", zone = "Z", rest] = isoTime.exec(line) ?? [];
  if (rest === undefined) return undefined;
  const ms = Date.parse(`${date.replace(" ", "T")}${zone}`) + Number(`0.${fraction}`) * 1000;
  return { ms, rest };
}

function syslogTimeOf(line: string, nowMs: number) {
  const [, month = "", day = "", time = "", rest] = syslogTime.exec(line) ?? [];
  return rest === undefined ? undefined : { ms: withoutYear(`${day} ${month}`, time, nowMs), rest };
}

function withoutYear(day: string, time: string, nowMs: number): number {
  const year = new Date(nowMs).getUTCFullYear();
  const ms = Date.parse(`${day} ${year} ${time} UTC`);
  return ms > nowMs + 24 * 60 * 60_000 ? Date.parse(`${day} ${year - 1} ${time} UTC`) : ms;
}
