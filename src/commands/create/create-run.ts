import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/context.ts";
import { createCluster } from "../../cluster/create.ts";
import { type CreateRequest, creationTooSlow } from "../../cluster/create/create-request.ts";
import { summarizeCreation } from "../../cluster/create/plan-machines.ts";
import { assertWorkspace, planInstallation } from "../../cluster/plan-installation.ts";
import type { SuperuserLogin } from "../../cluster/superuser-login.ts";
import { superuserLogin } from "../../cluster/superuser-login.ts";
import { waitForCluster } from "../../cluster/wait-for-cluster.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import type { InstallPlan } from "../../platform/install/install-plan.ts";
import { accepted } from "../../system/checked.ts";
import { timeLimit, whileWaitingFor } from "../../system/time-limit.ts";
import { tableText } from "../cluster-view.ts";
import type { Driver } from "../driver.ts";
import type { CreateInput } from "./create-options.ts";
import { reportCreated, summarizeCreated } from "./report-created.ts";

/** Checks everything that can be checked locally before the first request that costs money. */
export async function runCreate(driver: Driver, input: CreateInput, context: Context): Promise<void> {
  const login = await readLogin(input, context);
  const request = createRequest(driver, input, context);
  using limit = timeLimit(input.timeout, creationTooSlow(input.clusterId));
  const signal = AbortSignal.any([context.signal, limit.signal]);
  const [install, backend] = await Promise.all([
    checkedInstallation(request, context, signal),
    driver.open(input, context, signal),
  ]);
  if (input.dryRun) {
    const summary = await summarizeCreation(request, { backend, install }, signal);
    context.output.result({ text: tableText(summary.lines), data: { plan: summary.facts } });
    return;
  }
  const cluster = await createCluster(request, { backend, install }, context, context.signal);
  await finish(backend, cluster, { driver, input, login, deadlineMs: request.deadlineMs }, context);
}

async function checkedInstallation(
  { installation }: CreateRequest<unknown>,
  context: Context,
  signal: AbortSignal,
): Promise<InstallPlan | undefined> {
  if (installation === undefined) return undefined;
  const check = async () => planInstallation(installation, context, signal);
  const [install] = await Promise.all([
    whileWaitingFor(() => `the artifact ${installation.artifact.shown}`, check, signal),
    assertWorkspace(installation.workspaceFolder),
  ]);
  return install;
}

interface Finish {
  readonly driver: Driver;
  readonly input: CreateInput;
  readonly login: SuperuserLogin | undefined;
  readonly deadlineMs: number;
}

/** Reports the cluster, and waits until it is ready if that was requested. */
async function finish(
  backend: Backend<unknown>,
  cluster: ClusterRecord,
  { driver, input, login, deadlineMs }: Finish,
  context: Context,
): Promise<void> {
  const { from } = input;
  const happened =
    from === undefined
      ? "The installation has started"
      : `The nodes continue from snapshot "${from.name}" of cluster "${from.clusterId}"`;
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
  // The variant of a snapshot isn't known yet. Only an enterprise cluster's wait uses the login.
  const variant = input.from === undefined ? input.variant : "enterprise";
  return accepted(superuserLogin(variant, input.extraConfig ?? {}, password));
}

function createRequest(driver: Driver, input: CreateInput, context: Context): CreateRequest<unknown> {
  const { from } = input;
  return {
    clusterId: input.clusterId,
    machines:
      from === undefined
        ? {
            variant: input.variant,
            distribution: input.linuxDistribution,
            counts: { master: input.masters, agent: input.agents, public_agent: input.publicAgents },
            options: driver.creation(input),
          }
        : { from },
    installation: from === undefined ? installationRequest(input) : undefined,
    ownKey: input.sshKey,
    keepOnFailure: input.keepOnFailure,
    deadlineMs: context.clock.now() + input.timeout,
    onAbandon: (describe) => context.onAbandon(describe),
  };
}

const installationRequest = (input: CreateInput): CreateRequest<unknown>["installation"] => ({
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
