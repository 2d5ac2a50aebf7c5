import type { Backend } from "../model/backend.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import type { CreationRequest, CreationSummary } from "../model/creation.ts";
import { webSchemeOf } from "../platform/configuration/configuration.ts";
import { imagePreparation } from "../platform/image-preparation.ts";
import { createInstaller } from "../platform/installer.ts";
import { layoutNeeds, layoutOf } from "../platform/layouts/find-layout.ts";
import type { Runtime } from "../system/runtime.ts";
import type { ClusterCreation } from "./create-cluster.ts";
import { createCluster } from "./create-cluster.ts";
import type { CheckedInstallation } from "./plan-installation.ts";
import { planInstallation } from "./plan-installation.ts";

/** A cluster whose machines suit an installation that is known before they exist. */
export interface InstalledCluster<Options> extends Pick<
  CreationRequest<Options>,
  "clusterId" | "distribution" | "counts" | "options"
> {
  readonly installation: CheckedInstallation;
}

export type CreationRules = Pick<ClusterCreation, "ownKey" | "keepOnFailure" | "deadlineMs" | "onAbandon">;

/** Creates the machines and starts the installation on them; see createCluster. */
export async function createInstalledCluster<Options>(
  backend: Backend<Options>,
  request: InstalledCluster<Options> & CreationRules,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { installation, ownKey, keepOnFailure, deadlineMs, onAbandon } = request;
  const plan = planInstallation(installation, backend);
  const { clock, progress } = runtime;
  const creation: ClusterCreation = {
    clusterId: request.clusterId,
    plan: async (inner) => backend.plan(creationRequest(request), inner),
    ownKey,
    keepOnFailure,
    deadlineMs,
    onAbandon,
    installer: (connections, inner) => createInstaller(plan, { connections, clock, progress }, inner),
  };
  return createCluster(backend, creation, runtime, signal);
}

/** Describes what would be created, without creating anything. */
export async function summarizeCreation<Options>(
  backend: Backend<Options>,
  request: InstalledCluster<Options>,
  signal: AbortSignal,
): Promise<CreationSummary> {
  return (await backend.plan(creationRequest(request), signal)).summary;
}

function creationRequest<Options>({
  installation: { layoutHint, variant, configuration },
  clusterId,
  distribution,
  counts,
  options,
}: InstalledCluster<Options>): CreationRequest<Options> {
  const layout = layoutOf(layoutHint);
  const securityMode = configuration.kind === "added" ? configuration.securityMode : undefined;
  return {
    clusterId,
    variant,
    distribution,
    counts,
    options,
    needsCgroups1: layoutNeeds(layout, "cgroups-1"),
    imagePreparation: imagePreparation(layout),
    openPorts: layout.publicPorts,
    webScheme: webSchemeOf(variant, configuration.values, securityMode),
  };
}
