/**
 * Which lines of logs a report can show. As objects, a million lines take hundreds of megabytes, so
 * the others go before the next log is read.
 */
import type { LogLine } from "../logs/log-lines.ts";
import { isError, signOf } from "./signs.ts";

/** Less than 5 MB. */
export const pageBytes = 4_900_000;
/** Few lines take less of the page. */
const usualBytes = 100;
const nearMs = 5_000;

/**
 * Returns what drops the lines of a log that have no place in the page: neither errors, nor near
 * one of these moments, nor among the newest of their node. `onDropped` gets their number.
 */
export function thinner(
  moments: readonly number[],
  nodes: number,
  onDropped: (count: number) => void,
): (lines: readonly LogLine[]) => readonly LogLine[] {
  const most = Math.ceil(pageBytes / usualBytes);
  const newest = Math.ceil(most / Math.max(1, nodes));
  const mostOthers = 4 * newest;
  return (lines) => {
    const sorted = lines.toSorted((a, b) => (a.ms ?? 0) - (b.ms ?? 0));
    const isNear = nearTo(moments);
    const used = { errors: 0, near: 0 };
    const kept = sorted.filter((line, index) => {
      if (index === 0 || index >= sorted.length - newest) return true;
      if (isError(line.text) || signOf(line)) return (used.errors += 1) <= mostOthers;
      return isNear(line.ms) && (used.near += 1) <= mostOthers;
    });
    onDropped(lines.length - kept.length);
    return kept;
  };
}

/** Returns whether a moment is near one of these. The moments that it is asked for must grow. */
export function nearTo(moments: readonly number[]): (ms: number | undefined) => boolean {
  const sorted = moments.toSorted((a, b) => a - b);
  let next = 0;
  return (ms) => {
    if (ms === undefined) return false;
    while (next < sorted.length && (sorted[next] ?? 0) + nearMs < ms) next += 1;
    const moment = sorted[next];
    return moment !== undefined && Math.abs(moment - ms) <= nearMs;
  };
}
