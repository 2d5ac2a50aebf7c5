import type {
  Backend,
  Creation,
  CreationRequest,
  CreationSummary,
} from "../../backend/contract.ts";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import {
  type PlatformName,
  type WebScheme,
  type WebUi,
  webUiText,
} from "../../model/cluster-record.ts";
import { platformText } from "../../model/parse-values.ts";
import { webSchemeOf } from "../../platform/configuration/configuration.ts";
import {
  imagePreparation,
  layoutNeeds,
  layouts,
  publicPorts,
} from "../../platform/layouts/find-layout.ts";
import type { InstallPlan } from "../../platform/install/install-plan.ts";
import { folderLayout } from "../../platform/layouts/folder.ts";
import type { Layout } from "../../platform/layouts/layout.ts";
import { findCluster } from "../find-cluster.ts";
import type { CreateRequest, SnapshotCopy } from "./create-request.ts";

/** The backend that creates a cluster, and what is installed on it. */
export interface CreationTarget<Options> {
  readonly backend: Backend<Options>;
  readonly install: InstallPlan | undefined;
}

/** What a plan says of a platform without variants, besides the facts of its backend. */
export interface PlannedPlatform {
  readonly platform?: Pick<PlatformName, "name" | "version">;
}

export async function summarizeCreation<Options>(
  request: CreateRequest<Options>,
  target: CreationTarget<Options>,
  signal: AbortSignal,
): Promise<CreationSummary> {
  const { summary } = await planMachines({ ...request, isRehearsal: true }, target, signal);
  const platform = target.install?.platform;
  if (platform === undefined) return summary;
  const { name, version } = platform;
  return {
    ...summary,
    lines: [["Platform", `${name} ${version}`], ...summary.lines],
    facts: { ...({ platform: { name, version } } satisfies PlannedPlatform), ...summary.facts },
  };
}

export async function planMachines<Options>(
  {
    clusterId,
    machines,
    lifetimeMs,
    isRehearsal = false,
  }: CreateRequest<Options> & Pick<CreationRequest<Options>, "isRehearsal">,
  { backend, install }: CreationTarget<Options>,
  signal: AbortSignal,
): Promise<Creation> {
  if (lifetimeMs !== undefined && backend.local === undefined)
    throw new ClusterError(
      "bad-usage",
      `Clusters of this kind (${backend.name}) end at a time of their own.`,
      {
        hint: `Leave out ${optionName("lifetime")}.`,
      },
    );
  if ("from" in machines) return planCopy(backend, { clusterId, ...machines, lifetimeMs }, signal);
  const { platform, ...others } = machines;
  const known =
    install ?? (platform && { ...installedLater, platform, layout: folderLayout(platform) });
  return backend.plan(
    { clusterId, lifetimeMs, isRehearsal, ...others, ...(known ? needsOf(known) : unknownNeeds) },
    signal,
  );
}

type MachineNeeds = Pick<
  CreationRequest<never>,
  "needsCgroups1" | "folderDistribution" | "imagePreparation" | "openPorts" | "webUi" | "platform"
>;

type Known = Pick<InstallPlan, "layout" | "platform" | "variant" | "configuration">;

const installedLater = {
  variant: "none",
  configuration: { kind: "complete", values: {} },
} as const;

function needsOf(known: Known): MachineNeeds {
  const { layout = layouts[0], platform, variant, configuration } = known;
  const securityMode = configuration.kind === "added" ? configuration.securityMode : undefined;
  return {
    needsCgroups1: layoutNeeds(layout, "cgroups-1"),
    folderDistribution: folderDistributionOf(layout),
    imagePreparation: imagePreparation(layout),
    openPorts: layout.publicPorts,
    webUi: webUiOf(layout, webSchemeOf(variant, configuration.values, securityMode)),
    platform:
      platform &&
      platformText({ name: platform.name, version: platform.version, ports: layout.publicPorts }),
  };
}

function folderDistributionOf(layout: Layout): MachineNeeds["folderDistribution"] {
  const { apt, dnf } = layout.packages;
  if (apt.length > 0 && dnf.length === 0) return "debian-12";
  if (layout.release !== undefined) return undefined;
  if (layoutNeeds(layout, "cgroups-1")) return "almalinux-8";
  return dnf.length > 0 && apt.length === 0 ? "almalinux-9" : "debian-12";
}

const webUiOf = ({ web }: Layout, scheme: WebScheme): WebUi =>
  web === undefined ? "none" : web.endpoint === undefined ? scheme : webUiText(web.endpoint);

/** The requirements if the artifact isn't known yet. The preparation of the nodes will check the rest. */
const unknownNeeds: MachineNeeds = {
  needsCgroups1: false,
  folderDistribution: undefined,
  imagePreparation: undefined,
  openPorts: publicPorts,
  webUi: undefined,
};

async function planCopy(
  backend: Backend<never>,
  {
    clusterId,
    from,
    copies,
    lifetimeMs,
  }: SnapshotCopy & Pick<CreateRequest<never>, "clusterId" | "lifetimeMs">,
  signal: AbortSignal,
): Promise<Creation> {
  const { local } = backend;
  if (local === undefined)
    throw new ClusterError(
      "bad-usage",
      `Clusters of this kind (${backend.name}) are not created ${optionName("from")} snapshots or files.`,
    );
  const { snapshots } = local;
  if ("location" in from)
    return snapshots.planCopy({ clusterId, file: from, copies, lifetimeMs }, signal);
  const source = await findCluster(backend, from.clusterId, signal);
  return snapshots.planCopy({ clusterId, source, snapshot: from.name, copies, lifetimeMs }, signal);
}
