import type { Backend, CreationRequest } from "../contract.ts";
import { join } from "node:path";
import { abandonedCreations } from "../../system/files/creation-folder.ts";
import type { Instance } from "@aws-sdk/client-ec2";
import { stateFolder } from "../../system/files/state-folder.ts";
import type { Runtime } from "../../system/runtime.ts";
import { cgroups1Advice } from "../cgroups1.ts";
import { ipDetect } from "../ip-detect.ts";
import { cloudAdmission } from "./admission/cloud-admission.ts";
import type { CloudApi } from "./api/api.ts";
import { CloudCreation } from "./cloud-creation.ts";
import type { CloudOptions } from "./options.ts";
import { clusterConsoleOutput } from "./records/console-output.ts";
import { describeInstances } from "./api/describe.ts";
import { cgroups1Distributions } from "./launch/distributions.ts";
import { findInOtherRegions } from "./records/find-in-other-regions.ts";
import { ipDetectPublic } from "./ip-detect-public.ts";
import { listAllRegions } from "./records/list-all-regions.ts";
import { openApi } from "./api/open-api.ts";
import { readMachines } from "./records/read-machines.ts";
import { type KnownHere, readKnownHere } from "./records/own-launches.ts";
import { type ClusterReading, clustersOf, pickCluster, type Place } from "./records/records.ts";
import { withRegionAdvice } from "./api/region-advice.ts";
import { removeCluster } from "./removal/remove-cluster.ts";
import { resolveCreation } from "./launch/resolve-creation.ts";
import { assertIdIsFree } from "./launch/cluster-exists.ts";
import { foreignResourceText } from "../foreign-resource.ts";

export interface CloudPlace {
  readonly region: string;
}

/** Opens clusters on EC2 instances in one region. Looks for credentials at once (`no-credentials`); the first call sends the first request. */
export async function createCloudBackend({ region }: CloudPlace, runtime: Runtime, signal: AbortSignal) {
  const open = await openApi(region, runtime, signal);
  const api = open(region);
  const placeOf = (name: string): Place => ({
    region: name,
    root: join(stateFolder(runtime.environment), "cloud", name),
  });
  const place = placeOf(region);
  const read = clusterReader(runtime);
  return {
    name: "cloud" as const,
    place: { kind: "region", name: region, option: "region" },
    nodes: {
      ipDetect,
      ipDetectPublic,
      nodesKeepTime: true,
      cgroups1Advice: cgroups1Advice(cgroups1Distributions),
    },
    plan: async (request, planSignal) => {
      const planIt = () => planCreation(api, { place, request }, runtime, planSignal);
      return withRegionAdvice(open, region, planIt, planSignal);
    },
    find: async (clusterId, findSignal) => {
      const ask = () => describeInstances(api, { clusterId }, findSignal);
      const reading = await read(await withRegionAdvice(open, region, ask, findSignal), place);
      return pickCluster(reading, clusterId, reading.creationIds);
    },
    findInOtherPlaces: async (clusterId, findSignal) => findInOtherRegions(open, region, clusterId, findSignal),
    list: async (listSignal) => {
      const ask = () => describeInstances(api, "all", listSignal);
      return (await read(await withRegionAdvice(open, region, ask, listSignal), place)).clusters;
    },
    listAllPlaces: async (listSignal) =>
      listAllRegions(
        open,
        region,
        async (name, instances) => (await read(instances, placeOf(name))).clusters,
        listSignal,
      ),
    remove: async (cluster, removeSignal) => removeCluster(api, cluster, runtime, removeSignal),
    admission: cloudAdmission(api, runtime.environment),
    consoleOutput: async (cluster, outputSignal) => clusterConsoleOutput(api, cluster, outputSignal),
  } satisfies Backend<CloudOptions>;
}

/** Resolves the creation and makes sure that its id is free. */
async function planCreation(
  api: CloudApi,
  { place, request }: { readonly place: Place; readonly request: CreationRequest<CloudOptions> },
  runtime: Runtime,
  signal: AbortSignal,
): Promise<CloudCreation> {
  const { clusterId } = request;
  const [resolved, instances, abandoned] = await Promise.all([
    resolveCreation(api, request, runtime.environment, signal),
    describeInstances(api, { clusterId }, signal),
    abandonedCreations(place.root, clusterId),
  ]);
  const leaving = abandoned.map(({ creation }) => creation.creationId);
  const { machines, rivals } = readMachines(instances);
  const wanted = { clusterId, region: api.region, nowMs: api.now(), leaving };
  assertIdIsFree({ machines: [...machines, ...rivals] }, wanted);
  return new CloudCreation({ api, place, request, resolved }, runtime);
}

/** Reads the clusters of a place, and reports things that only look like a cluster. */
const clusterReader =
  ({ progress }: Runtime) =>
  async (instances: readonly Instance[], place: Place): Promise<ClusterReading & Pick<KnownHere, "creationIds">> => {
    const { creationIds, launches } = await readKnownHere(readMachines(instances).machines, place.root);
    const { machines, foreignResources } = readMachines(instances, launches);
    for (const foreignResource of foreignResources) progress.detail(1, foreignResourceText(foreignResource));
    return { machines, clusters: clustersOf(machines, place), creationIds };
  };
