import type { ClusterRecord } from "../../model/cluster-record.ts";
import { creationDirectory } from "../../system/creation-folder.ts";
import type { RollBack } from "../roll-back.ts";
import { describeContainers } from "./describe.ts";
import { destroyCommand } from "./engine.ts";
import { type Making, remainsText } from "./making.ts";
import type { ContainerProvisioning } from "./provision.ts";
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
  { engine, root, request }: ContainerProvisioning,
  making: Making,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const containers = await describeContainers(engine, { creationId: making.creationId }, signal);
  const [cluster] = toClusters({ containers, networks: [], abandoned: new Set() }, root);
  return (
    cluster ?? {
      id: making.clusterId,
      creationId: making.creationId,
      backend: "container",
      region: undefined,
      variant: request.variant,
      distribution: making.resolved.distribution,
      state: "incomplete",
      createdAt: undefined,
      expiresAt: undefined,
      nodes: [],
      directory: creationDirectory(root, making.clusterId, making.creationId),
    }
  );
}
