import { BadValue } from "../../cli/options/option.ts";
import type { Problems } from "../../cli/options/problems.ts";
import { parseDuration } from "../../cli/options/value-types.ts";
import { type FaultRequest, faultProblems } from "../../cluster/faults/fault-request.ts";

/** The values of the command. Values that the fault doesn't need are absent. */
export type FaultInput = Omit<FaultRequest, "kind"> & {
  readonly action: FaultRequest["kind"] | "list" | "heal";
};

export function checkFault({ action, ...values }: Partial<FaultInput>, problems: Problems): void {
  if (action === "list" && values.nodes?.length) problems.add("NODE: list takes no nodes");
  if (action === undefined || action === "list" || action === "heal") return;
  const { durationMs = 1000 } = values;
  for (const problem of faultProblems({ ...values, durationMs, kind: action }))
    problems.add(problem);
}

export function parseLoss(given: string): number {
  const percent = /^(\d{1,3}(?:\.\d{1,2})?)%?$/.exec(given)?.[1];
  if (percent === undefined)
    throw new BadValue(`${JSON.stringify(given)} is not a percentage such as 5% or 0.5%`);
  return Number(percent);
}

export function parseRate(given: string): number {
  const [, number, unit = ""] = /^(\d{1,9})([kmg])bit$/.exec(given) ?? [];
  if (number === undefined)
    throw new BadValue(`${JSON.stringify(given)} is not a rate such as 512kbit, 1mbit or 1gbit`);
  return Number(number) * 1000 ** ["k", "m", "g"].indexOf(unit);
}

export function parseOffset(given: string): number {
  const ms = parseDuration(given.replace(/^[+-]/, ""));
  return given.startsWith("-") ? -ms : ms;
}

export function parseSize(given: string): number {
  const [, number, unit = ""] = /^(\d{1,15})([KMG]?)$/.exec(given) ?? [];
  if (number === undefined)
    throw new BadValue(`${JSON.stringify(given)} is not a size such as 0, 64K, 10M or 1G`);
  return Number(number) * 1024 ** ["", "K", "M", "G"].indexOf(unit);
}
