import type { CreationFolder, CreationRequest } from "../../contract.ts";
import { countsText } from "../../../model/cluster-record.ts";
import { version } from "../../../version.ts";
import { assertReadable } from "../../assert-readable.ts";
import type { CloudApi } from "../api/api.ts";
import type { CloudOptions } from "../options.ts";
import type { Place } from "../records/records.ts";
import type { LaunchLedger } from "./launch.ts";
import { lifetimeMs } from "./lifetime.ts";
import type { GroupRequest } from "./network.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";

export interface CloudPlan {
  readonly api: CloudApi;
  readonly place: Place;
  readonly request: CreationRequest<CloudOptions>;
  readonly resolved: ResolvedCreation;
}

/** Everything requested so far, which is all that a rollback needs. */
export interface RequestedResources {
  readonly folder: CreationFolder;
  readonly expiresAt: Date;
  readonly group: GroupRequest;
  /** Undefined: requested, but the answer isn't known. */
  groupId: string | undefined;
  readonly launches: LaunchLedger;
  launchedMs: number | undefined;
  /** Machines that the API was told to terminate. */
  ended: readonly string[];
}

/** Returns what a creation has requested when it begins: nothing yet. Throws if no command could read its tags back. */
export function newRequestedResources(
  { api, request, resolved }: CloudPlan,
  { folder, vpcId }: { readonly folder: CreationFolder; readonly vpcId: string },
): RequestedResources {
  const { clusterId, options } = request;
  // In whole seconds and by the API's clock, because this machine's clock may be wrong.
  const expiresAt = new Date(Math.floor((api.now() + lifetimeMs) / 1000) * 1000);
  const tags = {
    clusterId,
    creationId: folder.creationId,
    counts: countsText(request.counts),
    variant: request.variant,
    ...(request.webScheme !== undefined && { webScheme: request.webScheme }),
    distribution: options.image === undefined ? request.distribution : `image ${options.image.id}`,
    sshUser: resolved.image.user,
    expiresAt: expiresAt.toISOString(),
    createdBy: version,
  };
  assertReadable(tags);
  const group = { clusterId, vpcId, tags };
  return { folder, expiresAt, group, groupId: undefined, launches: new Map(), launchedMs: undefined, ended: [] };
}
