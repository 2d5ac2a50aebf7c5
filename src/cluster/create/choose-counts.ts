import {
  type Counts,
  type Role,
  masterCounts,
  nodeCount,
  roles,
} from "../../model/cluster-record.ts";
import type { PlatformFacts } from "../../platform/folder/platform-file.ts";
import type { Checked } from "../../model/checked.ts";

const countOptions = { master: "masters", agent: "agents", public_agent: "publicAgents" } as const;
const usualCount = 1;

/** Returns the numbers of a new cluster's nodes. The platform may have defaults and limits of its own. */
export function chooseCounts(
  requested: RequestedCounts,
  platform: PlatformFacts | undefined,
): Checked<Counts> {
  const counts = Object.fromEntries(
    roles.map((role) => [role, requested[role] ?? defaultCount(role, platform?.nodes[role] ?? {})]),
  ) as Counts;
  const problems =
    platform === undefined
      ? []
      : roles.flatMap((role) => limitProblems(role, counts[role], platform));
  const total = nodeCount(counts);
  if (total > mostNodes) {
    const tooMany = `${total} nodes are too many (the maximum is ${mostNodes})`;
    problems.push(`\`masters\`, \`agents\`, \`publicAgents\`: ${tooMany}`);
  }
  return problems.length > 0 ? { problems } : { value: counts };
}

type NodeLimits = PlatformFacts["nodes"][Role];

function defaultCount(
  role: Role,
  { default: own = usualCount, min = 0, max = mostNodes }: NodeLimits,
): number {
  const count = Math.min(max, Math.max(min, own));
  return role === "master" ? (masterCounts.find((each) => each >= count) ?? count) : count;
}

function limitProblems(
  role: Role,
  count: number,
  { name, nodes }: PlatformFacts,
): readonly string[] {
  const { min = 0, max = mostNodes } = nodes[role];
  if (count >= min && count <= max) return [];
  const limit = count < min ? `needs at least ${min}` : `allows at most ${max}`;
  return [`\`${countOptions[role]}\`: the platform ${name} ${limit}, not ${count}`];
}

export const mostNodes = 1000;

/** How many nodes of each role the user asks for; undefined: the default. */
export type RequestedCounts = Readonly<Record<Role, number | undefined>>;
