import { ClusterError } from "../errors.ts";

/** What a backend says where nodes have version 2 of the control groups and version 1 is needed. */
export const cgroups1Advice = (distributions: readonly string[]): string =>
  `Choose a \`linuxDistribution\` that has version 1: ${distributions.join(", ")}.`;

/** Throws `machine-not-set-up` where the platform needs version 1 of the control groups, and the nodes would have version 2. */
export function assertCgroups1(
  needsCgroups1: boolean,
  nodes: { readonly name: string; readonly cgroupVersion: 1 | 2 | undefined; readonly advice: string },
): void {
  if (!needsCgroups1 || nodes.cgroupVersion !== 2) return;
  throw new ClusterError(
    "machine-not-set-up",
    `The artifact's platform can isolate with version 1 of the control groups only, and ${nodes.name} has version 2.`,
    { hint: nodes.advice, facts: { nodes: nodes.name, cgroupVersion: nodes.cgroupVersion } },
  );
}
