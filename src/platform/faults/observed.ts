import { numbered } from "../../system/amounts.ts";
import type { Observed } from "./fault-kind.ts";

const linksOf = (observed: readonly Observed[]): readonly (number | undefined)[] =>
  observed.flatMap(({ linksMs }) => [...linksMs.values()]);

export function fastest(observed: readonly Observed[]): number | undefined {
  const known = linksOf(observed).filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** `2 of 4 pings answered` */
export function answered(observed: readonly Observed[]): string {
  const links = linksOf(observed);
  const count = links.filter((ms) => ms !== undefined).length;
  return `${count} of ${numbered(links.length, "ping")} answered`;
}

export function roundTrip(observed: readonly Observed[]): string {
  if (linksOf(observed).length === 0) return "no other node to ping";
  const ms = fastest(observed);
  return ms === undefined ? "no ping is answered" : `a round trip takes ${ms} ms`;
}

export function range(values: readonly number[], shown: (value: number) => string): string {
  const [least, most] = [shown(Math.min(...values)), shown(Math.max(...values))];
  return least === most ? least : `${least} to ${most}`;
}

/** The number that each node measured; 0 where there is none. */
export const numbersOf = (observed: readonly Observed[], key: string): readonly number[] =>
  observed.map(({ measured }) => {
    const text = measured.get(key) ?? "";
    return /^\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : 0;
  });
