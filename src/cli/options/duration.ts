import { BadValue } from "./option.ts";

const unitMs = Object.entries({ d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 });

const shape = /^(?:(?<d>\d+)d)?(?:(?<h>\d+)h)?(?:(?<m>\d+)m(?!s))?(?:(?<s>\d+)s)?(?:(?<ms>\d+)ms)?$/;

/** Converts `15m`, `90s`, `1h30m` or `250ms` to milliseconds, more than zero. Throws `BadValue`. */
export function parseDuration(given: string): number {
  const parts = given === "" ? undefined : shape.exec(given)?.groups;
  if (parts === undefined) {
    throw new BadValue(`${JSON.stringify(given)} is not a duration such as 90s, 15m or 1h30m`);
  }
  const ms = unitMs.reduce((sum, [unit, length]) => sum + Number(parts[unit] ?? 0) * length, 0);
  // A timer of the runtime holds 31 bits, which is 24 days. No wait here needs as much as a month.
  if (ms < 1 || ms > 2 ** 31 - 1) throw new BadValue(`${JSON.stringify(given)} is not between 1ms and 24d`);
  return ms;
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
