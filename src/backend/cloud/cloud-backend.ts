import { clockText, shownSkewMs } from "./lifetime.ts";
import { join } from "node:path";
import type { Instance } from "@aws-sdk/client-ec2";
import { shellText } from "../../ssh/shell-text.ts";
import { abandonedCreations } from "../../store/creation-folder.ts";
import { findLastRecord } from "../../store/last-record.ts";
import { stateFolder } from "../../store/state-folder.ts";
import { poll } from "../../system/retry.ts";
import type { Runtime, Work } from "../../system/runtime.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import type { AllScopesList, Backend, CreationRequest } from "../contract.ts";
import { foreignResourceText } from "../shared/foreign-resource.ts";
import { cgroups1Advice } from "../shared/machine-errors.ts";
import { ipDetect, ipDetectOf, privateAddressLines } from "../shared/node-scripts.ts";
import { cloudAdmission } from "./admission.ts";
import { type CloudApi, describeInstances } from "./api/api.ts";
import { openApi, type OpenRegion } from "./api/open-api.ts";
import { withRegionAdvice } from "./api/region-advice.ts";
import { CloudCreation } from "./cloud-creation.ts";
import findPublicAddress from "./find-public-address.sh" with { type: "text" };
import { cgroups1Distributions, chooseDistribution } from "./launch/distributions.ts";
import { assertIdIsFree } from "./launch/network.ts";
import type { CloudOptions } from "./options.ts";
import { type KnownHere, readKnownHere } from "./launch/saved-requests.ts";
import { resolveCreation } from "./plan.ts";
import { readMachines } from "./read-machines.ts";
import {
  type ClusterReading,
  type RegionFolder,
  clusterConsoleOutput,
  clustersOf,
  findInOtherRegions,
  listAllRegions,
  pickCluster,
} from "./records.ts";
import { removeCluster } from "./removal.ts";

/** Prints the node's public IPv4 address, or the private one if it has none. */
const ipDetectPublic = ipDetectOf(privateAddressLines, shellText(findPublicAddress));

const nodes = {
  ipDetect,
  ipDetectPublic,
  nodesKeepTime: true,
  cgroups1Advice: cgroups1Advice(cgroups1Distributions),
} as const;

/** Opens the clusters of one region. Looks for credentials at once (`no-credentials`), but sends no request yet. */
export async function createCloudBackend(work: Work, { region }: { readonly region: string }) {
  const open = await openApi(work, region);
  const api = open(region);
  const folderOf = (name: string): RegionFolder => ({
    region: name,
    root: join(stateFolder(work.environment), "cloud", name),
  });
  const folder = folderOf(region);
  const read = clusterReader(work);
  return {
    name: "cloud" as const,
    scope: {
      kind: "region",
      name: region,
      option: "region",
      findElsewhere: async (clusterId, findSignal) =>
        findInOtherRegions(open, region, clusterId, findSignal),
    },
    nodes,
    plan: async (asked, planSignal) => {
      const request = {
        ...asked,
        distribution: chooseDistribution(asked.distribution, asked.folderDistribution),
      };
      const planIt = () =>
        planCreation({ ...work, signal: planSignal }, api, { regionFolder: folder, request });
      const creation = await withRegionAdvice(open, region, planIt, planSignal);
      if (request.isRehearsal === true) await creation.rehearse(planSignal);
      return creation;
    },
    find: async (clusterId, findSignal) => {
      const ask = () => describeInstances(api, { clusterId }, findSignal);
      const look = async () => read(await withRegionAdvice(open, region, ask, findSignal), folder);
      const isKnown = async () =>
        (await findLastRecord(folder.root, clusterId, api.now())) !== undefined;
      const reading = await lookAgain({ ...work, signal: findSignal }, look, isKnown);
      return pickCluster(reading, clusterId, reading.creationIds);
    },
    list: async (listSignal) => {
      const ask = () => describeInstances(api, "all", listSignal);
      const { clusters } = await read(
        await withRegionAdvice(open, region, ask, listSignal),
        folder,
      );
      warnOfClock(api.now(), work);
      return clusters;
    },
    remove: async (cluster, removeSignal) =>
      removeCluster({ ...work, signal: removeSignal }, api, cluster),
    cloud: {
      admission: cloudAdmission(api, work),
      listAll: async (listSignal) =>
        listRegions({ ...work, signal: listSignal }, { open, region, folderOf, read }),
    },
    consoleOutput: async (cluster, outputSignal) =>
      clusterConsoleOutput(api, cluster, outputSignal),
  } satisfies Backend<CloudOptions>;
}

interface Regions {
  readonly open: OpenRegion;
  readonly region: string;
  readonly folderOf: (region: string) => RegionFolder;
  readonly read: ReturnType<typeof clusterReader>;
}

async function listRegions(
  work: Work,
  { open, region, folderOf, read }: Regions,
): Promise<AllScopesList> {
  const found = await listAllRegions(
    open,
    region,
    async (name, instances) => (await read(instances, folderOf(name))).clusters,
    work.signal,
  );
  warnOfClock(open(region).now(), work);
  return found;
}

/**
 * An answer without any machine, not even ended ones, may omit them. So if this machine knows of
 * some, it looks for a while.
 */
async function lookAgain<Reading extends ClusterReading>(
  { clock, signal }: Work,
  look: () => Promise<Reading>,
  isKnown: () => Promise<boolean>,
): Promise<Reading> {
  const first = await look();
  if (first.machines.length > 0 || !(await isKnown())) return first;
  const lookAtMachines = async (): Promise<Reading | undefined> => {
    const reading = await look();
    return reading.machines.length > 0 ? reading : undefined;
  };
  return (await poll(lookAtMachines, ruleOf(waits.relisting, clock), signal)) ?? first;
}

async function planCreation(
  work: Work,
  api: CloudApi,
  {
    regionFolder,
    request,
  }: { readonly regionFolder: RegionFolder; readonly request: CreationRequest<CloudOptions> },
): Promise<CloudCreation> {
  const { clusterId } = request;
  const [resolved, instances, abandoned] = await Promise.all([
    resolveCreation(work, api, request),
    describeInstances(api, { clusterId }, work.signal),
    abandonedCreations(regionFolder.root, clusterId),
  ]);
  const leaving = abandoned.map(({ creation }) => creation.creationId);
  const { machines, rivals } = readMachines(instances);
  const wanted = { clusterId, region: api.region, nowMs: api.now(), leaving };
  assertIdIsFree({ machines: [...machines, ...rivals] }, wanted);
  return new CloudCreation({ api, regionFolder, request, resolved }, work);
}

/** People read ages and times left by this machine's clock. */
function warnOfClock(apiMs: number, { clock, progress }: Runtime): void {
  const behindMs = apiMs - clock.now();
  if (Math.abs(behindMs) > shownSkewMs)
    progress.warn(`${clockText(behindMs)}: ages and times left are wrong.`);
}

const clusterReader =
  ({ progress }: Runtime) =>
  async (
    instances: readonly Instance[],
    folder: RegionFolder,
  ): Promise<ClusterReading & Pick<KnownHere, "creationIds">> => {
    const { creationIds, launches } = await readKnownHere(
      readMachines(instances).machines,
      folder.root,
    );
    const { machines, foreignResources } = readMachines(instances, launches);
    for (const foreignResource of foreignResources)
      progress.detail(1, foreignResourceText(foreignResource));
    return { machines, clusters: clustersOf(machines, folder), creationIds };
  };
