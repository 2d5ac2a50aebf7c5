import type { Counts } from "../model/cluster-record.ts";
import { roles } from "../model/cluster-record.ts";

/** The platform's masters decide by majority, so it accepts only these numbers. */
export const masterCounts: readonly number[] = [1, 3, 5, 7, 9];
export const mostNodes = 1000;

export const nodeCountProblem = (total: number): string | undefined =>
  total > mostNodes ? `${total} nodes are too many (the maximum is ${mostNodes})` : undefined;

/** Returns every problem with a cluster's counts, one sentence each. */
export function countsProblems(counts: Counts): readonly string[] {
  const odd = roles.filter((role) => !Number.isInteger(counts[role]) || counts[role] < 0);
  const total = nodeCountProblem(roles.reduce((sum, role) => sum + counts[role], 0));
  return [
    ...(masterCounts.includes(counts.master)
      ? []
      : [`the number of masters must be one of ${masterCounts.join(", ")}, not ${counts.master}`]),
    ...odd
      .filter((role) => role !== "master")
      .map((role) => `a cluster cannot have ${counts[role]} nodes of the role ${role}`),
    ...(total === undefined ? [] : [total]),
  ];
}
