import type { ClusterRecord } from "../../model/cluster-record.ts";
import type { RollBack } from "../roll-back.ts";
import { destroyCommand } from "./destroy-command.ts";
import { readCluster } from "./cluster-facts.ts";
import { type Making, remainsText } from "./making.ts";
import type { VmProvisioning } from "./provision.ts";
import { observeCluster } from "./records.ts";
import { removeCreation, stopCreation } from "./remove-creation.ts";

/** How what a creation has made is undone. */
export function vmRollBack({ request, surroundings }: VmProvisioning, making: Making): RollBack {
  const { directory } = making;
  const { clock } = surroundings;
  return {
    directory,
    isUntouched: !making.isTouched,
    keepOnFailure: request.keepOnFailure,
    saveEvidence: async (signal) => {
      const cluster = await describeCluster(directory);
      if (cluster !== undefined) await request.onFailure(cluster, signal);
    },
    end: async (signal) => stopCreation(directory, clock, signal),
    remove: async (signal) => {
      await removeCreation(directory, clock, signal);
      return undefined;
    },
    keptText: () => `its machines. Remove them with: ${destroyCommand(making.clusterId)}`,
    remainsText: () => remainsText(making),
  };
}

async function describeCluster(directory: string): Promise<ClusterRecord | undefined> {
  const stored = await readCluster(directory);
  return stored === undefined ? undefined : observeCluster(stored);
}
