import { ClusterError, quoted } from "../../errors.ts";
import { optionName, runCommand } from "../../references.ts";
import { tooSlow } from "../../system/time-limit.ts";
import { type ClusterRecord, nodeReference, webUiText } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { type ArtifactHead, assertVariant } from "../../platform/artifact/artifact-head.ts";
import type { ArtifactLocation } from "../../platform/artifact/artifact-request.ts";
import type { PlatformFacts } from "../../platform/folder/platform-file.ts";
import type { InstallPlan } from "../../platform/install/install-plan.ts";
import { layouts } from "../../platform/layouts/find-layout.ts";
import { folderLayout } from "../../platform/layouts/folder.ts";
import type { Layout, LayoutUpgrade } from "../../platform/layouts/layout.ts";
import type { Work } from "../../system/runtime.ts";
import { checkedArtifact, readCheckedHead } from "../plan-installation.ts";
import type { SurveyedNode } from "./upgrade-order.ts";

export interface UpgradeRequest {
  readonly clusterId: string;
  readonly artifact: ArtifactLocation;
  /** Hexadecimal; undefined: not checked. */
  readonly sha256: string | undefined;
  /** How many agents are upgraded at once; masters always follow each other. */
  readonly parallel: number;
  /** An existing folder on this machine with room for the artifact. */
  readonly workspaceFolder: string;
  /** The time of `passedMs` at which the upgrade gives up. */
  readonly deadlineMs: number;
  /**
   * Registers a description of the nodes' state, for a program that has to end at once. Disposed of
   * with the upgrade.
   */
  readonly onAbandon: (describe: () => string) => Disposable;
}

/**
 * Checks the artifact as far as this machine can, and hides its secrets. Throws
 * `artifact-unreachable`, `artifact-invalid`, and `bad-usage` if it can't upgrade anything.
 */
export async function checkedHead(
  work: Work,
  { artifact, sha256 }: Pick<UpgradeRequest, "artifact" | "sha256">,
): Promise<ArtifactHead> {
  const head = await readCheckedHead(work, { artifact, sha256 });
  if (head.hasUpgrade !== false) return head;
  const { platform } = head;
  const facts = { artifact: artifact.shown };
  if (platform === undefined) {
    const message = `Releases such as ${artifact.shown} cannot upgrade a running cluster.`;
    throw new ClusterError("bad-usage", message, {
      hint: "Create another cluster from it.",
      facts,
    });
  }
  const message = `The platform ${platform.name} in ${artifact.shown} cannot upgrade a running cluster: it has no program named upgrade.`;
  const hint = "Put an executable file named upgrade into the folder, beside install and check.";
  throw new ClusterError("bad-usage", message, { hint, facts });
}

export type UpgradableLayout = Layout & { readonly upgrade: LayoutUpgrade };

/**
 * Compares an artifact with what is installed, before anything is changed. Returns the layout of the new version.
 * Throws `not-installed`, `machine-failed`, `variant-mismatch`, and `artifact-invalid` if it is another platform.
 */
export function assertFits(
  head: ArtifactHead,
  { artifact }: Pick<UpgradeRequest, "artifact">,
  {
    cluster,
    surveyed,
  }: { readonly cluster: ClusterRecord; readonly surveyed: readonly SurveyedNode[] },
): UpgradableLayout {
  for (const { node, found } of surveyed) {
    if (found.layout !== "" && found.version !== "") continue;
    throw new ClusterError(
      "not-installed",
      `The platform is not installed on ${nodeReference(node)} yet.`,
      {
        hint: `${runCommand("wait")}, then upgrade again.`,
        facts: { node: nodeReference(node) },
      },
    );
  }
  const installed = layouts.find(({ name }) => name === surveyed[0]?.found.layout);
  const layout = head.layout ?? installed;
  if (installed === undefined || layout === undefined || layout.name !== installed.name)
    throw notThisPlatform(
      artifact,
      `releases such as this one have other paths than what is installed`,
    );
  if (!isUpgradable(layout))
    throw notThisPlatform(artifact, "its releases cannot upgrade a running cluster");
  if (head.platform === undefined) assertVariant(head.variant, cluster.variant, artifact.shown);
  else assertSamePlatform(head.platform, artifact, surveyed);
  return layout;
}

const isUpgradable = (layout: Layout): layout is UpgradableLayout => layout.upgrade !== undefined;

function assertSamePlatform(
  platform: PlatformFacts,
  artifact: ArtifactLocation,
  surveyed: readonly SurveyedNode[],
): void {
  for (const { node, found } of surveyed) {
    if (found.name === platform.name) continue;
    const reason = `it is the platform ${quoted(platform.name)}, but ${nodeReference(node)} has ${quoted(found.name)}`;
    throw notThisPlatform(artifact, reason);
  }
  const before = surveyed.find(({ found }) => found.facts !== undefined)?.found.facts;
  const [was = "none", is = "none"] = [before, platform].map((facts) => {
    const endpoint = folderLayout(facts).web?.endpoint;
    return endpoint && webUiText(endpoint);
  });
  if (before === undefined || was === is) return;
  throw notThisPlatform(
    artifact,
    `its web UI is ${outside(is)}, and that of a running cluster stays ${outside(was)}`,
  );
}

const notThisPlatform = (artifact: ArtifactLocation, reason: string): ClusterError =>
  new ClusterError(
    "artifact-invalid",
    `The cluster cannot be upgraded to ${artifact.shown}: ${reason}.`,
    {
      hint: "Pass another version of the platform that the cluster was created with.",
      facts: { artifact: artifact.shown },
    },
  );

export const planOf = (
  { artifact, sha256, workspaceFolder }: UpgradeRequest,
  head: ArtifactHead,
  { cluster, layout }: { readonly cluster: ClusterRecord; readonly layout: Layout },
): InstallPlan => ({
  artifact: checkedArtifact(artifact, head),
  sha256,
  layout,
  platform: head.platform,
  variant: cluster.variant,
  configuration: { kind: "complete", values: {} },
  genconfFiles: [],
  copyToMaster: [],
  selinuxEnforcing: false,
  workspaceFolder,
});

export const upgradeTooSlow = (clusterId: string): ClusterError =>
  tooSlow(
    "Upgrading",
    clusterId,
    `Run the same command again, if need be with a larger ${optionName("timeout")}.`,
  );
