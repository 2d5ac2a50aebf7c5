import type { Backend } from "../model/backend.ts";
import type { CreationRequest } from "../model/creation.ts";
import type { Context } from "../cli/context.ts";
import type { ValuesOf } from "../cli/option.ts";
import { createCluster } from "../cluster/create-cluster.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { waitForCluster } from "../cluster/wait-for-cluster.ts";
import { ClusterError } from "../errors.ts";
import { assertVariant, headLimitMs, readArtifactHead } from "../platform/artifact-head.ts";
import { assertSum } from "../platform/artifact-download.ts";
import type { ArtifactHead } from "../platform/artifact-head.ts";
import type { ArtifactLocation } from "../platform/artifact-location.ts";
import { webSchemeOf } from "../platform/configuration.ts";
import { configurationSecrets } from "../platform/configuration-secrets.ts";
import { imagePreparation } from "../platform/image-preparation.ts";
import type { InstallPlan } from "../platform/install-plan.ts";
import { createInstaller } from "../platform/installer.ts";
import { layoutOf, layoutNeeds } from "../platform/layouts/find-layout.ts";
import { resolveLicense } from "../platform/license.ts";
import { freeSpaceProblem } from "../system/files/free-space.ts";
import { urlSecrets } from "../system/mask-url.ts";
import { clusterView, durationText, nodeView, tableText } from "./cluster-view.ts";
import { licenseSources } from "./create-options.ts";
import type { createOptions } from "./create-options.ts";
import type { Driver } from "./driver.ts";

export type CreateInput = ValuesOf<ReturnType<typeof createOptions>> & { readonly artifact: ArtifactLocation };

const workspaceBytes = 2e9;

/** All that can be checked here is checked before the first request that costs money. */
export async function runCreate(driver: Driver, input: CreateInput, context: Context): Promise<void> {
  const startMs = context.clock.now();
  hideSecrets(input, context);
  const [backend, head] = await Promise.all([
    driver.open(input, context, context.signal),
    readArtifactHead(input.artifact, { clock: context.clock, limitMs: headLimitMs }, context.signal),
    checkSpace(input.workspaceDir),
    checkSum(input, context.signal),
  ]);
  assertVariant(head.variant, input.variant, input.artifact.shown);
  const request = creationRequest(driver, input, head);
  if (input.dryRun) {
    const { summary } = await backend.plan(request, context.signal);
    context.output.result({ text: tableText(summary.lines), data: { plan: summary.facts } });
    return;
  }
  const deadlineMs = startMs + input.timeout;
  const cluster = await create(backend, { driver, input, context, head, request, deadlineMs });
  report(cluster, { driver, input }, context);
  if (input.wait) await waitFor(backend, { cluster, input, context, deadlineMs });
}

function hideSecrets(input: CreateInput, { progress }: Context): void {
  if (input.artifact.kind === "url") for (const secret of urlSecrets(input.artifact.url)) progress.hide(secret);
  for (const secret of configurationSecrets(input.extraConfig ?? {})) progress.hide(secret);
}

async function checkSpace(folder: string): Promise<void> {
  const problem = await freeSpaceProblem(folder, workspaceBytes);
  if (problem === undefined) return;
  throw new ClusterError("machine-not-set-up", problem, {
    hint: "Name another folder, with 2 GB of room, with --workspace-dir or TMPDIR.",
    facts: { folder },
  });
}

/** Of a file of this machine; the node, or the download, sees to the others. */
async function checkSum({ artifact, artifactSha256 }: CreateInput, signal: AbortSignal): Promise<void> {
  if (artifact.kind === "file" && artifactSha256 !== undefined) await assertSum(artifact, artifactSha256, signal);
}

function creationRequest(driver: Driver, input: CreateInput, head: ArtifactHead): CreationRequest<unknown> {
  const layout = layoutOf(head.layout);
  return {
    clusterId: input.clusterId,
    variant: input.variant,
    distribution: input.linuxDistribution,
    counts: { master: input.masters, agent: input.agents, public_agent: input.publicAgents },
    options: driver.creation(input),
    needsCgroups1: layoutNeeds(layout, "cgroups-1"),
    imagePreparation: imagePreparation(layout),
    openPorts: layout.publicPorts,
    webScheme: webSchemeOf(input.variant, input.extraConfig ?? {}, input.securityMode),
  };
}

interface Creating {
  readonly driver: Driver;
  readonly input: CreateInput;
  readonly context: Context;
  readonly head: ArtifactHead;
  readonly request: CreationRequest<unknown>;
  readonly deadlineMs: number;
}

async function create(backend: Backend<unknown>, creating: Creating): Promise<ClusterRecord> {
  const { input, context, request, deadlineMs } = creating;
  const plan = await installPlan(backend, creating);
  const { clock, progress } = context;
  return await createCluster(
    backend,
    {
      ...request,
      ownKey: input.sshKey,
      keepOnFailure: input.keepOnFailure,
      deadlineMs,
      installer: (connections, signal) => createInstaller(plan, { connections, clock, progress }, signal),
      onAbandon: (describe) => context.onAbandon(describe),
    },
    context,
    context.signal,
  );
}

async function installPlan(backend: Backend<unknown>, { input, context, head }: Creating): Promise<InstallPlan> {
  const license = (await resolveLicense(licenseSources(input, context.environment))).value;
  if (license !== undefined) context.progress.hide(license.contents);
  return {
    artifact: input.artifact,
    sha256: input.artifactSha256,
    layoutHint: head.layout,
    variant: input.variant,
    configuration: {
      kind: "added",
      values: input.extraConfig ?? {},
      securityMode: input.securityMode,
      licenseKey: license?.contents,
    },
    genconfFiles: input.genconfDir?.files ?? [],
    copyToMaster: input.copyToMaster.flat(),
    selinuxEnforcing: input.enableSelinuxEnforcing,
    ipDetect: backend.ipDetect,
    ipDetectPublic: backend.ipDetectPublic,
    nodesKeepTime: backend.nodesKeepTime,
    cgroups1Advice: backend.cgroups1Advice,
    workspaceFolder: input.workspaceDir,
  };
}

function report(
  cluster: ClusterRecord,
  { driver, input }: Pick<Creating, "driver" | "input">,
  { output, progress, clock }: Context,
): void {
  const facts = clusterView(cluster, clock.now());
  const { masters, agents, publicAgents } = facts.counts;
  progress.note(
    `The installation has started: ${numbered(masters, "master")}, ${numbered(agents, "agent")}, ${numbered(publicAgents, "public agent")}.`,
  );
  if (facts.secondsLeft !== undefined)
    progress.note(`The machines end by themselves in ${durationText(facts.secondsLeft)}, at ${facts.expiresAt}.`);
  if (facts.maximumCostDollars !== undefined) {
    progress.note(
      `Cost at most $${facts.maximumCostDollars.toFixed(2)}; storage, public addresses and licensed images cost extra.`,
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

const numbered = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** The options that name the place, unless it is the default one. */
function placeWords(driver: Driver, input: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(driver.placeOptions).filter(
    ([name, option]) => input[name] !== undefined && input[name] !== option.default,
  );
  return given.map(([name, option]) => ` ${option.flag} ${String(input[name])}`).join("");
}

interface Waiting {
  readonly cluster: ClusterRecord;
  readonly input: CreateInput;
  readonly context: Context;
  readonly deadlineMs: number;
}

async function waitFor(backend: Backend<unknown>, { cluster, input, context, deadlineMs }: Waiting): Promise<void> {
  const username = input.extraConfig?.["superuser_username"];
  const login = { username: typeof username === "string" ? username : "admin", password: "admin" };
  await waitForCluster(
    backend,
    { clusterId: cluster.id, login, skipHttpChecks: false, deadlineMs },
    context,
    context.signal,
  );
  context.progress.note(`Cluster "${cluster.id}" is ready.`);
}
