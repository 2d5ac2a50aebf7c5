import type { LaunchLedger } from "./launch.ts";
import type { LaunchSubnet } from "./network.ts";
import type { TagValues } from "./tags.ts";

/** What a creation has made or asked for so far: all that a roll-back must know. Grows while the creation goes on. */
export interface Making {
  readonly clusterId: string;
  readonly creationId: string;
  readonly directory: string;
  readonly expiresAt: Date;
  readonly network: LaunchSubnet;
  readonly tags: TagValues;
  readonly launches: LaunchLedger;
  /** `asked`: the answer isn't known. */
  group: { readonly state: "none" | "asked" } | { readonly state: "made"; readonly id: string };
}

export function machineIds(making: Making): readonly string[] {
  return [...making.launches.values()].flatMap((launch) => launch.machineIds ?? []);
}

/** For someone who ends the program now: what may be left, and how it goes away. */
export function remainsText(making: Making | undefined, region: string): string {
  if (making === undefined || (making.group.state === "none" && making.launches.size === 0)) {
    return `Nothing has been made in region ${region}.`;
  }
  const ids = machineIds(making);
  const machines = ids.length === 0 ? "Machines of this creation" : `Machines ${ids.join(", ")}`;
  const group = making.group.state === "made" ? `security group ${making.group.id}` : "its security group";
  return `${machines} may be left in region ${region}: they end by themselves at ${making.expiresAt.toISOString()}; the next create there removes ${group}.`;
}
