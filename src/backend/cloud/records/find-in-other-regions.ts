import type { OtherPlaces } from "../../contract.ts";
import { parseRegion } from "../../../model/parse-values.ts";
import type { CloudApi } from "../api/api.ts";
import { describeInstances } from "../api/describe.ts";
import type { OpenRegion } from "../api/open-api.ts";
import { readMachines } from "./read-machines.ts";

const limitMs = 8_000;

/** Finds other enabled regions that have a cluster with this id. Best effort: a region that doesn't answer in time counts as having none. */
export async function findInOtherRegions(
  open: OpenRegion,
  here: string,
  clusterId: string,
  signal: AbortSignal,
): Promise<OtherPlaces> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const others = (await enabledRegions(open(here), bounded).catch(() => [])).filter((region) => region !== here);
  const found = await Promise.all(
    others.map(async (region) => ((await hasCluster(open(region), clusterId, bounded)) ? region : undefined)),
  );
  signal.throwIfAborted();
  return { places: found.filter((region) => region !== undefined).toSorted(), unreachable: [] };
}

/** Returns the names of the regions that the account can use. */
export async function enabledRegions(api: CloudApi, signal: AbortSignal): Promise<readonly string[]> {
  const answer = await api.call("DescribeRegions", {}, signal);
  return (answer.Regions ?? []).map((region) => parseRegion(region.RegionName)).filter((name) => name !== undefined);
}

async function hasCluster(api: CloudApi, clusterId: string, signal: AbortSignal): Promise<boolean> {
  const instances = await describeInstances(api, { clusterId }, signal).catch(() => []);
  return readMachines(instances).machines.some((machine) => machine.state !== "ended");
}
