import type { ClusterRecord } from "../../model/cluster-record.ts";
import { creationDirectory } from "../../system/creation-folder.ts";
import type { ProvisionRequest, Surroundings } from "../backend.ts";
import { isClusterExists } from "../cluster-exists.ts";
import type { RollBack } from "../roll-back.ts";
import type { CloudApi } from "./api.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { describeInstances } from "./describe.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { machineIds, type Making, remainsText } from "./making.ts";
import { createGroup } from "./network.ts";
import { type Place, toClusters } from "./records.ts";
import { removeCreation } from "./remove-creation.ts";

export interface CloudCreationWork {
  readonly api: CloudApi;
  readonly place: Place;
  readonly request: Pick<ProvisionRequest<CloudOptions>, "keepOnFailure" | "onFailure" | "variant" | "distribution">;
  readonly surroundings: Surroundings;
}

/** How what a creation has made in the cloud is undone. */
export function cloudRollBack(work: CloudCreationWork, making: Making): RollBack {
  const { api, request, surroundings } = work;
  const told: { ended: readonly string[]; unknown: readonly string[] } = { ended: [], unknown: [] };
  return {
    directory: making.directory,
    isUntouched: making.group.state === "none",
    keepOnFailure: request.keepOnFailure,
    saveEvidence: async (signal) => request.onFailure(await describeCluster(work, making, signal), signal),
    end: async (signal) => {
      Object.assign(told, await endLaunches(api, [...making.launches.values()], surroundings.clock, signal));
    },
    remove: async (signal) => {
      const groupId = await learnGroup(work, making, signal);
      const remains = { creationId: making.creationId, machineIds: told.ended, groupId };
      const left = await removeCreation(api, remains, surroundings, signal);
      return leftoversText({ ...left, unknownLaunches: told.unknown, expiresAt: making.expiresAt });
    },
    keptText: () => {
      const ids = machineIds(making);
      const what = ids.length === 0 ? "no machines" : `machines ${ids.join(", ")}`;
      return `${what}. They end by themselves at ${making.expiresAt.toISOString()}.`;
    },
    remainsText: () => remainsText(making, api.region),
  };
}

async function describeCluster(work: CloudCreationWork, making: Making, signal: AbortSignal): Promise<ClusterRecord> {
  const instances = await describeInstances(work.api, { creationId: making.creationId }, signal);
  const [cluster] = toClusters(instances, work.place);
  return cluster ?? emptyCluster(work, making);
}

/** No machine can be seen (yet, or any more). */
function emptyCluster({ request, place }: CloudCreationWork, making: Making): ClusterRecord {
  return {
    id: making.clusterId,
    creationId: making.creationId,
    backend: "cloud",
    region: place.region,
    variant: request.variant,
    distribution: request.distribution,
    state: "incomplete",
    createdAt: undefined,
    expiresAt: making.expiresAt,
    nodes: [],
    directory: creationDirectory(place.root, making.clusterId, making.creationId),
  };
}

/** The group's id. Where the answer was lost it is asked for again, so that a request still under way can't leave one behind. */
async function learnGroup(work: CloudCreationWork, making: Making, signal: AbortSignal): Promise<string | undefined> {
  if (making.group.state === "made") return making.group.id;
  const request = { clusterId: making.clusterId, vpcId: making.network.vpcId, tags: making.tags };
  try {
    return await createGroup(work.api, request, work.surroundings.clock, signal);
  } catch (error) {
    if (isClusterExists(error)) return undefined;
    throw error;
  }
}
