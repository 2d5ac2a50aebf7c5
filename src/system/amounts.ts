import { type Counts, roles } from "../model/cluster-record.ts";
import { refined, string } from "../model/reader.ts";
import type { Rule } from "../model/rule.ts";

/** Times and amounts in texts for people. Data has ISO 8601 instead. */

/** `1 agent`, `0 agents`, `2 public agents`. */
export const numbered = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`;

/** `1 master, 0 agents, 2 public agents` */
export const nodesText = (counts: Counts): string =>
  roles.map((role) => numbered(counts[role], role.replace("_", " "))).join(", ");

/** `1 h 58 min`, `12 min`, `40 s`. */
export function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min`
    : joinUnits(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

/** `09:57 UTC (in 1 h 59 min)`, with the date if that is another day. */
export function endText(end: Date | string, nowMs: number): string {
  const seconds = (new Date(end).getTime() - nowMs) / 1000;
  return `${momentText(end, nowMs)} (${seconds < 0 ? `${durationText(-seconds)} ago` : `in ${durationText(seconds)}`})`;
}

/** `09:57 UTC`, or `2026-11-24 09:57 UTC` if that isn't today. */
export function momentText(moment: Date | string, nowMs: number): string {
  const [day = "", time = ""] = new Date(moment).toISOString().split("T");
  const today = new Date(nowMs).toISOString().slice(0, day.length);
  return `${day === today ? "" : `${day} `}${time.slice(0, 5)} UTC`;
}

const unitMs = Object.entries({ d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 });
const duration =
  /^(?:(?<d>\d+)d)?(?:(?<h>\d+)h)?(?:(?<m>\d+)m(?!s))?(?:(?<s>\d+)s)?(?:(?<ms>\d+)ms)?$/;

/** Converts `15m`, `90s`, `1h30m` or `250ms` to milliseconds; undefined for anything else. */
export function readDurationMs(text: string): number | undefined {
  const parts = text === "" ? undefined : duration.exec(text)?.groups;
  return (
    parts && unitMs.reduce((sum, [unit, length]) => sum + Number(parts[unit] ?? 0) * length, 0)
  );
}

export const durationRule: Rule<number> = {
  read: refined(string, readDurationMs),
  what: "a duration such as 90s, 15m or 1h30m",
};

/** `310 MB`, or `42 of 310 MB` */
export function megabytesText(bytes: number, ofBytes?: number): string {
  const [done, total] = [bytes, ofBytes ?? 0].map((each) => (each / 1e6).toFixed(0));
  return ofBytes === undefined ? `${done} MB` : `${done} of ${total} MB`;
}

/** Formats for people: `0.4 s`, `12.3 s`, `2 min 5 s`, `1 h 59 min`. */
export function formatDuration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return joinUnits(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  return joinUnits(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function joinUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
