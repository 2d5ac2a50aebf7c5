import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { assertWorkspace } from "../../cluster/plan-installation.ts";
import { upgradeTooSlow } from "../../cluster/upgrade/plan-upgrade.ts";
import { upgradeCluster } from "../../cluster/upgrade/upgrade-cluster.ts";
import type { ArtifactLocation } from "../../platform/artifact/artifact-request.ts";
import { outside } from "../../outside-text.ts";
import { endedBy, passedMs } from "../../system/runtime.ts";
import { timeLimit } from "../../system/time-limit.ts";
import { numbered } from "../../system/amounts.ts";
import type { JsonResults } from "../json-results.ts";

export async function executeUpgrade(
  kind: BackendKind,
  input: Readonly<Record<string, unknown>> & {
    readonly clusterId: string;
    readonly artifact: ArtifactLocation;
    readonly artifactSha256: string | undefined;
    readonly parallel: number;
    readonly workspaceDir: string;
    readonly timeout: number;
  },
  context: Context,
): Promise<void> {
  const startMs = passedMs(context.clock);
  const deadlineMs = startMs + input.timeout;
  using limit = timeLimit(input.timeout, upgradeTooSlow(input.clusterId));
  const [backend] = await Promise.all([
    kind.open(endedBy(context, limit), input),
    assertWorkspace(input.artifact, input.workspaceDir),
  ]);
  const request = {
    clusterId: input.clusterId,
    artifact: input.artifact,
    sha256: input.artifactSha256,
    parallel: input.parallel,
    workspaceFolder: input.workspaceDir,
    deadlineMs,
    onAbandon: (describe: () => string) => context.onAbandon(describe),
  };
  const { cluster, version, upgraded } = await upgradeCluster(context, backend, request);
  const seconds = Math.round((passedMs(context.clock) - startMs) / 1000);
  context.progress.note(
    upgraded.length === 0
      ? `Cluster "${cluster.id}" already has version ${outside(version)}: there is nothing to do.`
      : `Cluster "${cluster.id}" now has version ${outside(version)}: ${numbered(upgraded.length, "node")} upgraded in ${seconds} s.`,
  );
  context.output.result({
    text: "",
    data: {
      cluster: { id: cluster.id },
      version: outside(version),
      upgraded,
      seconds,
    } satisfies JsonResults["upgrade"],
  });
}
