import type { CreationRequest } from "../../contract.ts";
import { assertCgroups1, cgroups1Advice } from "../../cgroups1.ts";
import type { Environment } from "../../../system/runtime.ts";
import { normalizeCidr } from "./admin-cidrs.ts";
import type { CloudApi } from "../api/api.ts";
import { checkAddress } from "./check-address.ts";
import type { CloudOptions } from "../options.ts";
import { cgroups1Distributions, cgroupVersionOf } from "./distributions.ts";
import { findImage, type LaunchImage } from "./images.ts";
import { findSubnets, type LaunchSubnet } from "./network.ts";

/** What a creation's options resolve to in the cloud. */
export interface ResolvedCreation {
  readonly image: LaunchImage;
  /** Tried in this order; never empty. */
  readonly subnets: readonly LaunchSubnet[];
  readonly cidrs: readonly string[];
}

/** Looks up the image, the subnets and this machine's address concurrently. Creates nothing. */
export async function resolveCreation(
  api: CloudApi,
  request: Pick<CreationRequest<CloudOptions>, "distribution" | "options" | "needsCgroups1">,
  environment: Environment,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  const { adminCidrs, image, subnetId } = request.options;
  assertCgroups1(request.needsCgroups1, {
    name: request.distribution,
    // The cgroup version of a user's own image is known only once a node runs.
    cgroupVersion: image === undefined ? cgroupVersionOf(request.distribution) : undefined,
    advice: cgroups1Advice(cgroups1Distributions),
  });
  const [found, subnets, cidrs] = await Promise.all([
    findImage(api, request.distribution, image, signal),
    findSubnets(api, subnetId, signal),
    adminCidrs.length > 0 ? adminCidrs : checkAddress(environment, signal).then((address) => [address]),
  ]);
  return { image: found, subnets, cidrs: cidrs.map(normalizeCidr) };
}
