import type { AllPlacesList } from "../../contract.ts";
import { messageOf } from "../../../errors.ts";
import type { Instance } from "@aws-sdk/client-ec2";
import type { ClusterRecord } from "../../../model/cluster-record.ts";
import { describeInstances } from "../api/describe.ts";
import { enabledRegions } from "./find-in-other-regions.ts";
import type { OpenRegion } from "../api/open-api.ts";

const limitMs = 20_000;

/** Lists the clusters of all enabled regions concurrently. A region that doesn't answer is named, never left out silently. */
export async function listAllRegions(
  open: OpenRegion,
  here: string,
  read: (region: string, instances: readonly Instance[]) => Promise<readonly ClusterRecord[]>,
  signal: AbortSignal,
): Promise<AllPlacesList> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const regions = (await enabledRegions(open(here), bounded)).toSorted();
  const clusters: (readonly ClusterRecord[])[] = [];
  const unreachable: { place: string; reason: string }[] = [];
  await Promise.all(
    regions.map(async (region, index) => {
      try {
        clusters[index] = await read(region, await describeInstances(open(region), "all", bounded));
      } catch (error) {
        unreachable.push({ place: region, reason: messageOf(error) });
      }
    }),
  );
  signal.throwIfAborted();
  return { clusters: clusters.flat(), unreachable };
}
