import type { Role } from "../model/cluster-record.ts";

/** The platform's masters decide by majority, so it accepts only these numbers. */
export const masterCounts: readonly number[] = [1, 3, 5, 7, 9];
export const mostNodes = 1000;

export const nodeCountProblem = (total: number): string | undefined =>
  total > mostNodes ? `${total} nodes are too many (the maximum is ${mostNodes})` : undefined;

/** How many nodes of each role the user asks for; undefined: the default. */
export type AskedCounts = Readonly<Record<Role, number | undefined>>;
