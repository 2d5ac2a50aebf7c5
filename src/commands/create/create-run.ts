import type { Context } from "../../cli/context.ts";
import type { InstalledCluster } from "../../cluster/create-installed-cluster.ts";
import type { CreationRules } from "../../cluster/create-installed-cluster.ts";
import { createFromSnapshot, summarizeCopy } from "../../cluster/create-from-snapshot.ts";
import { createInstalledCluster, summarizeCreation } from "../../cluster/create-installed-cluster.ts";
import type { CheckedInstallation, InstallationRequest } from "../../cluster/plan-installation.ts";
import { assertWorkspace, checkInstallation } from "../../cluster/plan-installation.ts";
import type { SuperuserLogin } from "../../cluster/superuser-login.ts";
import { superuserLogin } from "../../cluster/superuser-login.ts";
import { creationTooSlow } from "../../cluster/create-cluster.ts";
import { timeLimit, whileWaitingFor } from "../../system/time-limit.ts";
import { waitForCluster } from "../../cluster/wait-for-cluster.ts";
import type { SnapshotName } from "../../cluster/snapshots.ts";
import type { Backend } from "../../model/backend.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { accepted } from "../../system/checked.ts";
import { tableText } from "../cluster-view.ts";
import type { CreateInput } from "./create-options.ts";
import type { Driver } from "../driver.ts";
import { reportCreated, summarizeCreated } from "./report-created.ts";

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
  const rules = creationRules(input, deadlineMs, context);
  const cluster = await createInstalledCluster(backend, { ...request, ...rules }, context, context.signal);
  const happened = "The installation has started";
  await finish(backend, cluster, { driver, input, happened, login, deadlineMs }, context);
}

/** Creates a cluster from a snapshot. */
export async function runCreateFrom(
  driver: Driver,
  input: CreateInput & { readonly from: SnapshotName },
  context: Context,
): Promise<void> {
  const { clusterId, from } = input;
  // The snapshot's variant isn't known yet. Only an enterprise cluster's wait uses the login.
  const login = await readLogin({ ...input, variant: "enterprise" }, context);
  const deadlineMs = context.clock.now() + input.timeout;
  using limit = timeLimit(input.timeout, creationTooSlow(clusterId));
  const signal = AbortSignal.any([context.signal, limit.signal]);
  const backend = await driver.open(input, context, signal);
  if (input.dryRun) {
    const summary = await summarizeCopy(backend, { clusterId, from }, signal);
    context.output.result({ text: tableText(summary.lines), data: { plan: summary.facts } });
    return;
  }
  const copy = { clusterId, from, ...creationRules(input, deadlineMs, context) };
  const cluster = await createFromSnapshot(backend, copy, context, context.signal);
  const happened = `The nodes continue from snapshot "${from.name}" of cluster "${from.clusterId}"`;
  await finish(backend, cluster, { driver, input, happened, login, deadlineMs }, context);
}

const creationRules = (input: CreateInput, deadlineMs: number, context: Context): CreationRules => ({
  ownKey: input.sshKey,
  keepOnFailure: input.keepOnFailure,
  deadlineMs,
  onAbandon: (describe) => context.onAbandon(describe),
});

interface Finish {
  readonly driver: Driver;
  readonly input: CreateInput;
  readonly happened: string;
  readonly login: SuperuserLogin | undefined;
  readonly deadlineMs: number;
}

/** Reports the cluster, and waits until it is ready if that was requested. */
async function finish(
  backend: Backend<unknown>,
  cluster: ClusterRecord,
  { driver, input, happened, login, deadlineMs }: Finish,
  context: Context,
): Promise<void> {
  reportCreated(cluster, { driver, input, happened }, context);
  await summarizeCreated("Cluster created", { cluster, input }, context);
  if (!input.wait) return;
  const wait = { clusterId: cluster.id, login, skipHttpChecks: false, deadlineMs };
  await waitForCluster(backend, wait, context, context.signal);
  context.progress.note(`Cluster "${cluster.id}" is ready.`);
  await summarizeCreated("Cluster ready", { cluster, input }, context);
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
