import { optionName } from "../../references.ts";
import { type Counts, type Role, nodeCount, roles } from "../../model/cluster-record.ts";
import type { PlatformFacts } from "../../platform/folder/platform-file.ts";
import type { Checked } from "../../model/checked.ts";

type Limits = Pick<PlatformFacts, "name" | "nodes">;

/** For a platform that isn't known yet: it is checked once it is. */
export const anyCounts: Limits = { name: "", nodes: { master: {}, agent: {}, public_agent: {} } };

const countOptions = { master: "masters", agent: "agents", public_agent: "publicAgents" } as const;
const usualCount = 1;

/**
 * Returns the numbers of a new cluster's nodes. A platform may have defaults and limits of its own;
 * a release artifact, which has no facts, has rules.
 */
export function chooseCounts(
  requested: RequestedCounts,
  platform: Limits | undefined,
): Checked<Counts> {
  const counts = Object.fromEntries(
    roles.map((role) => [role, requested[role] ?? defaultCount(role, platform?.nodes[role] ?? {})]),
  ) as Counts;
  const problems =
    platform === undefined
      ? mastersProblem(counts.master)
      : roles.flatMap((role) => limitProblems(role, counts[role], platform));
  const total = nodeCount(counts);
  if (total > mostNodes) {
    const tooMany = `${total} nodes are too many (the maximum is ${mostNodes})`;
    problems.push(
      `${optionName("masters")}, ${optionName("agents")}, ${optionName("publicAgents")}: ${tooMany}`,
    );
  }
  return problems.length > 0 ? { problems } : { value: counts };
}

/** The masters of releases decide by majority, so a cluster has one of these numbers. */
const masterCounts: readonly number[] = [1, 3, 5, 7, 9];

const mastersProblem = (count: number): string[] =>
  masterCounts.includes(count)
    ? []
    : [
        `${optionName("masters")}: ${count} is not one of ${masterCounts.join(", ")}, as a release artifact requires`,
      ];

function defaultCount(
  role: Role,
  { default: own = usualCount, min = 0, max = mostNodes }: PlatformFacts["nodes"][Role],
): number {
  const count = Math.min(max, Math.max(min, own));
  return role === "master" ? Math.max(1, count) : count;
}

function limitProblems(role: Role, count: number, { name, nodes }: Limits): readonly string[] {
  const { min = 0, max = mostNodes } = nodes[role];
  if (count >= min && count <= max) return [];
  const limit = count < min ? `needs at least ${min}` : `allows at most ${max}`;
  return [`${optionName(countOptions[role])}: the platform ${name} ${limit}, not ${count}`];
}

export const mostNodes = 1000;

/** How many nodes of each role the user asks for; undefined: the default. */
export type RequestedCounts = Readonly<Record<Role, number | undefined>>;
