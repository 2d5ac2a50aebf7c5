import { ClusterError } from "../errors.ts";

/** The advice that a backend gives when a node has control groups version 2 and the platform needs version 1. */
export const cgroups1Advice = (distributions: readonly string[]): string =>
  `Choose a \`linuxDistribution\` that has cgroups 1: ${distributions.join(", ")}.`;

/** Throws `machine-not-set-up` if the platform needs control groups version 1 and the nodes would have version 2. */
export function assertCgroups1(
  needsCgroups1: boolean,
  nodes: { readonly name: string; readonly cgroupVersion: 1 | 2 | undefined; readonly advice: string },
): void {
  if (!needsCgroups1 || nodes.cgroupVersion !== 2) return;
  throw new ClusterError(
    "machine-not-set-up",
    `The artifact's platform requires cgroups 1, but ${nodes.name} has cgroups 2.`,
    { hint: nodes.advice, facts: { nodes: nodes.name, cgroupVersion: nodes.cgroupVersion } },
  );
}
