import type { Leftovers } from "./remove-creation.ts";

/** What could not be removed, and how it goes away by itself; `undefined` where nothing is left. */
export function leftoversText(
  left: Leftovers & { readonly unknownLaunches: readonly string[]; readonly expiresAt?: Date },
): string | undefined {
  const machines = left.machineIds.length === 0 ? [] : [`machines ${left.machineIds.join(", ")}`];
  const launches = left.unknownLaunches.length === 0 ? [] : [`perhaps machines of ${left.unknownLaunches.join(", ")}`];
  const groups = left.groupIds.map((id) => `security group ${id}`);
  const things = [...machines, ...launches, ...groups];
  if (things.length === 0) return undefined;
  const end = left.expiresAt === undefined ? "at their deadline" : `at ${left.expiresAt.toISOString()}`;
  return `Left behind: ${things.join("; ")}. Machines end by themselves ${end}; the next create in the region removes the rest.`;
}
