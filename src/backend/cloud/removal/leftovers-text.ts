import type { Leftovers } from "./remove-creation.ts";

/** Says what could not be removed and how it goes away by itself; `undefined` if nothing is left. */
export function leftoversText(left: Leftovers, expiresAt: Date | undefined): string | undefined {
  const machines = left.machineIds.length === 0 ? [] : [`machines ${left.machineIds.join(", ")}`];
  const groups = left.groupIds.map((id) => `security group ${id}`);
  const things = [...machines, ...groups];
  if (things.length === 0) return undefined;
  const end = expiresAt === undefined ? "at their deadline" : `at ${expiresAt.toISOString()}`;
  return `Left behind: ${things.join("; ")}. Machines end by themselves ${end}; the next create in the region removes the rest.`;
}
