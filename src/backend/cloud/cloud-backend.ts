import { join } from "node:path";
import { abandonedCreations } from "../../system/creation-folder.ts";
import { stateFolder } from "../../system/state-folder.ts";
import type { Backend } from "../../model/backend.ts";
import type { CreationRequest } from "../../model/creation.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { ipDetect } from "../ip-detect.ts";
import type { CloudApi } from "./api.ts";
import { CloudCreation } from "./cloud-creation.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { clusterConsoleOutput } from "./console-output.ts";
import { describeInstances } from "./describe.ts";
import { findElsewhere } from "./find-elsewhere.ts";
import { ipDetectPublic } from "./ip-detect-public.ts";
import { listEverywhere } from "./list-everywhere.ts";
import { openApi } from "./open-api.ts";
import { pickCluster, type Place, toClusters } from "./records.ts";
import { withRegionAdvice } from "./region-advice.ts";
import { removeCluster } from "./remove-cluster.ts";
import { resolveCreation } from "./resolve-creation.ts";
import { assertIdIsFree } from "./taken-id.ts";

export interface CloudPlace {
  readonly region: string;
}

/**
 * Clusters on EC2 instances of one region. Looks for credentials at once (`no-credentials`); the first request is sent by the first call.
 */
export async function createCloudBackend(
  { region }: CloudPlace,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Backend<CloudOptions>> {
  const open = await openApi(region, surroundings, signal);
  const api = open(region);
  const placeOf = (name: string): Place => ({
    region: name,
    root: join(stateFolder(surroundings.environment), "cloud", name),
  });
  const place = placeOf(region);
  return {
    name: "cloud",
    place: { kind: "region", name: region, option: "--cloud-region" },
    ipDetect,
    ipDetectPublic,
    plan: async (request, planSignal) => {
      const planIt = () => planCreation(api, { place, request }, surroundings, planSignal);
      return withRegionAdvice(open, region, planIt, planSignal);
    },
    find: async (clusterId, findSignal) => {
      const ask = () => describeInstances(api, { clusterId }, findSignal);
      return pickCluster(toClusters(await withRegionAdvice(open, region, ask, findSignal), place), clusterId);
    },
    findElsewhere: async (clusterId, findSignal) => findElsewhere(open, region, clusterId, findSignal),
    list: async (listSignal) => {
      const ask = () => describeInstances(api, "all", listSignal);
      return toClusters(await withRegionAdvice(open, region, ask, listSignal), place);
    },
    listEverywhere: async (listSignal) => listEverywhere(open, region, placeOf, listSignal),
    remove: async (cluster, removeSignal) => removeCluster(api, cluster, surroundings, removeSignal),
    consoleOutput: async (cluster, outputSignal) => clusterConsoleOutput(api, cluster, outputSignal),
  };
}

/** Resolves the creation, and makes sure that its id is free. */
async function planCreation(
  api: CloudApi,
  { place, request }: { readonly place: Place; readonly request: CreationRequest<CloudOptions> },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<CloudCreation> {
  const { clusterId } = request;
  const [resolved, instances, abandoned] = await Promise.all([
    resolveCreation(api, request, surroundings.environment, signal),
    describeInstances(api, { clusterId }, signal),
    abandonedCreations(place.root, clusterId),
  ]);
  const leaving = abandoned.map(({ creation }) => creation.creationId);
  assertIdIsFree({ instances }, { clusterId, region: api.region, nowMs: api.now(), leaving });
  return new CloudCreation({ api, place, request, resolved }, surroundings);
}
