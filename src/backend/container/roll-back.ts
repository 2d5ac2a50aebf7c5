import type { ClusterRecord } from "../../model/cluster-record.ts";
import type { RollBack } from "../roll-back.ts";
import { describeContainers } from "./describe.ts";
import { destroyCommand } from "./engine.ts";
import { type Making, remainsText } from "./making.ts";
import type { ContainerProvisioning } from "./provision.ts";
import { readNodes } from "./read-containers.ts";
import { toClusters } from "./records.ts";
import { removeCreation, stopCreation } from "./remove-creation.ts";

/** How what a creation has made is undone. */
export function containerRollBack(work: ContainerProvisioning, making: Making): RollBack {
  const { engine, request, surroundings } = work;
  return {
    directory: making.directory,
    isUntouched: !making.isTouched,
    keepOnFailure: request.keepOnFailure,
    saveEvidence: async (signal) => request.onFailure(await describeCluster(work, making, signal), signal),
    end: async (signal) => stopCreation(engine, making, signal),
    remove: async (signal) => removeCreation(engine, making, surroundings.clock, signal),
    keptText: () => `its containers. Remove them with: ${destroyCommand(engine, making.clusterId)}`,
    remainsText: () => remainsText(engine, making),
  };
}

async function describeCluster(
  { engine, root }: ContainerProvisioning,
  { network }: Making,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const described = await describeContainers(engine, { creationId: network.creationId }, signal);
  const containers = readNodes(described, [network]).read;
  const [cluster] = toClusters({ containers, networks: [network], abandoned: new Set() }, root);
  if (cluster === undefined) throw new TypeError("A network makes no cluster");
  return cluster;
}
