import type { Context } from "../cli/context.ts";
import type { ValuesOf } from "../cli/options/option.ts";
import type { InstalledCluster } from "../cluster/create-installed-cluster.ts";
import { createInstalledCluster, summarizeCreation } from "../cluster/create-installed-cluster.ts";
import type { CheckedInstallation, InstallationRequest } from "../cluster/plan-installation.ts";
import { assertWorkspace, checkInstallation } from "../cluster/plan-installation.ts";
import type { SuperuserLogin } from "../cluster/superuser-login.ts";
import { superuserLogin } from "../cluster/superuser-login.ts";
import { creationTooSlow } from "../cluster/create-cluster.ts";
import { timeLimit, whileWaitingFor } from "../system/time-limit.ts";
import { waitForCluster } from "../cluster/wait-for-cluster.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import type { ArtifactLocation } from "../platform/artifact/artifact-location.ts";
import { accepted } from "../system/checked.ts";
import { clusterView, durationText, nodeView, numbered, tableText } from "./cluster-view.ts";
import type { createOptions } from "./create-options.ts";
import type { Driver } from "./driver.ts";
import { renderCluster } from "./summary/render-summary.ts";
import { appendSummary } from "./summary/step-summary.ts";

export type CreateInput = ValuesOf<ReturnType<typeof createOptions>> & { readonly artifact: ArtifactLocation };

/** Checks everything that can be checked locally before the first request that costs money. */
export async function runCreate(driver: Driver, input: CreateInput, context: Context): Promise<void> {
  const login = await readLogin(input, context);
  const deadlineMs = context.clock.now() + input.timeout;
  using limit = timeLimit(input.timeout, creationTooSlow(input.clusterId));
  const signal = AbortSignal.any([context.signal, limit.signal]);
  const check = async () => checkInstallation(installationRequest(input), context, signal);
  const [installation, backend] = await Promise.all([
    whileWaitingFor(() => `the artifact ${input.artifact.shown}`, check, signal),
    driver.open(input, context, signal),
    assertWorkspace(input.workspaceDir),
  ]);
  const request = clusterRequest(driver, input, installation);
  if (input.dryRun) {
    const summary = await summarizeCreation(backend, request, signal);
    context.output.result({ text: tableText(summary.lines), data: { plan: summary.facts } });
    return;
  }
  const onAbandon = (describe: () => string): Disposable => context.onAbandon(describe);
  const rules = { ownKey: input.sshKey, keepOnFailure: input.keepOnFailure, deadlineMs, onAbandon };
  const cluster = await createInstalledCluster(backend, { ...request, ...rules }, context, context.signal);
  report(cluster, { driver, input }, context);
  await summarize("Cluster created", { cluster, input }, context);
  if (!input.wait) return;
  const wait = { clusterId: cluster.id, login, skipHttpChecks: false, deadlineMs };
  await waitForCluster(backend, wait, context, context.signal);
  context.progress.note(`Cluster "${cluster.id}" is ready.`);
  await summarize("Cluster ready", { cluster, input }, context);
}

async function summarize(
  title: string,
  { cluster, input }: { readonly cluster: ClusterRecord; readonly input: CreateInput },
  context: Context,
): Promise<void> {
  const phases = context.progress.timings().map(({ title: phase, ms }) => `${phase} ${(ms / 1000).toFixed(1)} s`);
  const markdown = renderCluster(title, clusterView(cluster, context.clock.now()), [["Phases", phases.join(", ")]]);
  await appendSummary(input.summary, markdown, context);
}

/** Asks for the password before anything else, so that nobody has to come back to type it. */
async function readLogin(input: CreateInput, { stdin, signal }: Context): Promise<SuperuserLogin | undefined> {
  if (!input.wait || input.dryRun) return undefined;
  const given = input.superuserPassword;
  const password = given === "-" ? await stdin.readSecret("Superuser password: ", signal) : given;
  return accepted(superuserLogin(input.variant, input.extraConfig ?? {}, password));
}

const installationRequest = (input: CreateInput): InstallationRequest => ({
  artifact: input.artifact,
  sha256: input.artifactSha256,
  variant: input.variant,
  configuration: {
    kind: "added",
    values: input.extraConfig ?? {},
    securityMode: input.securityMode,
    licenseFile: input.licenseKey,
  },
  genconfFiles: input.genconfDir?.files ?? [],
  copyToMaster: input.copyToMaster.flat(),
  selinuxEnforcing: input.enableSelinuxEnforcing,
  workspaceFolder: input.workspaceDir,
});

const clusterRequest = (
  driver: Driver,
  input: CreateInput,
  installation: CheckedInstallation,
): InstalledCluster<unknown> => ({
  installation,
  clusterId: input.clusterId,
  distribution: input.linuxDistribution,
  counts: { master: input.masters, agent: input.agents, public_agent: input.publicAgents },
  options: driver.creation(input),
});

function report(
  cluster: ClusterRecord,
  { driver, input }: { readonly driver: Driver; readonly input: CreateInput },
  { output, progress, clock }: Context,
): void {
  const facts = clusterView(cluster, clock.now());
  const { masters, agents, publicAgents } = facts.counts;
  progress.note(
    `The installation has started: ${numbered(masters, "master")}, ${numbered(agents, "agent")}, ${numbered(publicAgents, "public agent")}.`,
  );
  if (facts.secondsLeft !== undefined)
    progress.note(`The machines terminate automatically in ${durationText(facts.secondsLeft)}, at ${facts.expiresAt}.`);
  if (facts.maximumCostDollars !== undefined) {
    progress.note(
      `The cost is at most $${facts.maximumCostDollars.toFixed(2)}; storage, public addresses and licensed images cost extra.`,
    );
  }
  const phases = progress.timings().map(({ title, ms }) => ({ title, seconds: Math.round(ms / 100) / 10 }));
  progress.note(`Phases: ${phases.map(({ title, seconds }) => `${title} ${seconds.toFixed(1)} s`).join(", ")}.`);
  const next = `${driver.program} wait --cluster-id ${cluster.id}${placeWords(driver, input)}`;
  if (!input.wait) progress.note(`Next: ${next}`);
  output.result({
    text: cluster.id,
    data: { cluster: { ...facts, nodes: cluster.nodes.map(nodeView) }, phases, next },
  });
}

/** The options that name the place, unless it is the default one. */
function placeWords(driver: Driver, input: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(driver.placeOptions).filter(
    ([name, option]) => input[name] !== undefined && input[name] !== option.default,
  );
  return given.map(([name, option]) => ` ${option.flag} ${String(input[name])}`).join("");
}
