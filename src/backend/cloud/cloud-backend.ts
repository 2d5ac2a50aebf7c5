import { cgroups1Advice } from "../cgroups1.ts";
import { dirname, join } from "node:path";
import { stateFolder } from "../../system/state-folder.ts";
import type { Backend, Surroundings } from "../backend.ts";
import { ipDetect } from "../ip-detect.ts";
import { keptResolution } from "../kept-resolution.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { describeInstances } from "./describe.ts";
import { destroy } from "./destroy.ts";
import { evidence } from "./evidence.ts";
import { findElsewhere } from "./find-elsewhere.ts";
import { cgroups1Distributions } from "./distributions.ts";
import { ipDetectPublic } from "./ip-detect-public.ts";
import { type Making, remainsText } from "./making.ts";
import { openApi } from "./open-api.ts";
import { planCreation } from "./plan.ts";
import { provision } from "./provision.ts";
import { listEverywhere } from "./list-everywhere.ts";
import { pickCluster, toClusters } from "./records.ts";
import type { Place } from "./records.ts";
import { withRegionAdvice } from "./region-advice.ts";
import { resolveCreation, type ResolvedCreation } from "./resolve-creation.ts";

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
  const current: { making?: Making } = {};
  const resolution = keptResolution<CloudOptions, ResolvedCreation>((request, resolveSignal) =>
    resolveCreation(api, request, surroundings.environment, resolveSignal),
  );
  return {
    name: "cloud",
    place: { kind: "region", name: region, option: "--cloud-region" },
    ipDetect,
    ipDetectPublic,
    nodesKeepTime: true,
    cgroups1Advice: cgroups1Advice(cgroups1Distributions),
    remainsText: () => remainsText(current.making, region),
    plan: async (request, planSignal) => {
      const work = { api, root: place.root, resolve: async () => resolution.find(request, planSignal) };
      return withRegionAdvice(open, region, async () => planCreation(work, request, planSignal), planSignal);
    },
    provision: async (request, onNode, provisionSignal) =>
      provision(
        {
          api,
          place: { region, root: dirname(request.directory) },
          request,
          resolve: (resolveSignal) => resolution.take(request, resolveSignal),
          surroundings,
          onNode,
          onMaking: (making) => {
            current.making = making;
          },
        },
        provisionSignal,
      ),
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
    destroy: async (cluster, destroySignal) => destroy(api, cluster, surroundings, destroySignal),
    evidence: async (cluster, evidenceSignal) => evidence(api, cluster, evidenceSignal),
  };
}
