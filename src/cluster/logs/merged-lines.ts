/** Reads the logs of all nodes into lines in the order of this computer's clock. */
import type { NamedText } from "../../backend/contract.ts";
import { noLogsSuffix, readClock } from "../../platform/node-logs.ts";
import { type LogLine, readLines } from "./log-lines.ts";

/** A node's reference and the kind of text. */
export const logName = /^([a-z]+(?:_[a-z]+)?_\d+)\.([a-z.-]+)$/;
const clockName = /^([a-z_]+_\d+)\.clock\.txt$/;

/** Returns undefined for another text, and for a clock that can't be right. */
export function clockOf({ name, text }: NamedText) {
  const [, node] = clockName.exec(name) ?? [];
  const offsetMs = readClock(text);
  return node === undefined || offsetMs === undefined ? undefined : { node, offsetMs };
}

/**
 * Takes time in proportion to the texts, apart from the sorting. Lines without a time come first. What other logs repeat
 * of a journal is dropped.
 */
export function mergedLines(texts: readonly NamedText[], nowMs: number): readonly LogLine[] {
  const ahead = new Map(texts.flatMap((each) => clockOf(each) ?? []).map(toEntry));
  const logs = texts.flatMap((each) => {
    const [, node = "", kind = ""] = logName.exec(each.name) ?? [];
    if (kind === "" || clockName.test(each.name) || each.name.endsWith(noLogsSuffix)) return [];
    const given = { node, name: kind, text: each.text };
    return { kind, lines: readLines(given, { aheadMs: ahead.get(node) ?? 0, nowMs }) };
  });
  const journals = new Set(
    logs.flatMap(({ kind, lines }) => (kind === "journal.txt" ? lines.map(lineKey) : [])),
  );
  return logs
    .flatMap(({ kind, lines }) =>
      partsOfJournals.has(kind) ? lines.filter((line) => !journals.has(lineKey(line))) : lines,
    )
    .toSorted((a, b) => (a.ms ?? 0) - (b.ms ?? 0));
}

const partsOfJournals: ReadonlySet<string> = new Set(["kernel.txt", "platform-units.txt"]);
const toEntry = ({ node, offsetMs }: { readonly node: string; readonly offsetMs: number }) =>
  [node, offsetMs] as const;
const lineKey = ({ ms, node, text }: LogLine): string => `${node} ${ms} ${text}`;

/** `2026-11-29T06:53:37.123456Z`, for a time with microseconds behind the point. */
export function preciseTime(ms: number): string {
  const micros = Math.round(ms * 1000);
  const whole = new Date(Math.floor(micros / 1000)).toISOString().slice(0, -1);
  return `${whole}${String(micros % 1000).padStart(3, "0")}Z`;
}
