import { defineCommand, type Context } from "../../cli/command.ts";
import {
  argument,
  BadValue,
  type ValueType,
  whileOptionsAreRead,
} from "../../cli/options/option.ts";
import { value } from "../../cli/options/value-types.ts";
import type { Backend, BackendKind } from "../../backend/contract.ts";
import type {
  CreateRequest,
  InstallationRequest,
  NewMachines,
  SnapshotCopy,
} from "../../cluster/create/create-request.ts";
import type { CreationTarget } from "../../cluster/create/plan-machines.ts";
import type { SuperuserLogin } from "../../cluster/wait-for-cluster.ts";
import type { ArtifactLocation } from "../../platform/artifact/artifact-request.ts";
import { exampleNames } from "../../platform/examples/example-names.ts";
import type { InstallPlan } from "../../platform/install/install-plan.ts";
import { type CreateInput, requestedCounts, checkFile, createOptions } from "./create-options.ts";
import type { JsonResults } from "../json-results.ts";
import { readPassword } from "../options.ts";
import { checkSummary, summarizingFailure } from "../summary/step-summary.ts";

/** A release artifact, a folder or an example. */
export const platformType: ValueType<ArtifactLocation> = {
  ...value(artifactLocation, "file"),
  offers: exampleNames.map((name) => `example:${name}`),
};

export const createArguments = {
  artifact: argument(platformType, {
    name: "PLATFORM",
    summary:
      "What to install: the folder of a platform of your own; an example, such as example:etcd, or example:bare for nothing (see `examples`); or a release artifact (an installer generator script), as a path or as an https://, http:// or file:// URL",
    required: true,
  }),
};

export const createCommand = (kind: BackendKind) => {
  const options = createOptions(kind);
  return defineCommand({
    name: "create",
    summary: "Create a cluster",
    description:
      "Create the machines, prepare them and start the installation of PLATFORM on all of them. The command returns once the installation has started; to wait until the platform is ready, run `wait` or pass `--wait`. If anything fails before that, or on Ctrl-C, everything that was created is removed, and the logs are kept. From then on the cluster is kept, also if `--wait` fails or is interrupted.",
    positionals: createArguments,
    options,
    examples: [
      { words: "create --wait example:slurm", summary: "Create a cluster of an example" },
      {
        words: "create --masters 5 example:bare",
        summary: "Create machines on which nothing is installed",
      },
      {
        words: "create --variant oss https://example.com/installer.sh",
        summary: "Create one master, one agent and one public agent",
      },
      {
        words: "create --variant oss --masters 3 -c nightly ./installer.sh",
        summary: "Create a larger cluster from a local artifact",
      },
      {
        words: "create --wait ./etcd",
        summary: "Create a cluster with a platform of your own, from its folder",
      },
      {
        words: "create --variant enterprise --dry-run ./installer.ee.sh",
        summary: "Show what would be created",
      },
    ],
    check: async (given, problems, context) => {
      if (given.superuserPassword !== undefined && given.wait !== true)
        problems.add(
          "--superuser-password: only allowed with --wait, since create does not log in otherwise",
        );
      await checkSummary(given.summary, problems, context);
      if (given.summary && given.dryRun)
        problems.add("--summary: cannot be combined with --dry-run");
      checkFile(given, problems);
      if (given.from !== undefined) return;
      const { checkInstallation } = await import("./check-installation.ts");
      await checkInstallation(kind, given, problems, context);
    },
    run: async (input, context) => {
      const { clusterId, summary: isWanted } = input;
      const title = `Cluster ${clusterId} could not be ${input.wait ? "created, or did not become ready" : "created"}`;
      await summarizingFailure(title, { isWanted, context }, async () =>
        runCreate(kind, input, context),
      );
    },
  });
};

async function runCreate(kind: BackendKind, input: CreateInput, context: Context): Promise<void> {
  const prepared = await prepareCreate(kind, input, context);
  const { request, backend, login } = prepared;
  if (input.dryRun) return await showPlan(prepared, context);
  if (input.replace) await removeForReplacement(backend, input.clusterId, context);
  const { createOpenCluster } = await import("../../cluster/create.ts");
  await using created = await createOpenCluster(context, request, prepared);
  const { cluster } = created;
  const { describeCreated, finishCreated } = await import("./report-created.ts");
  describeCreated(cluster, progressText(input.from), context);
  const wait = async () => {
    const { waitForCluster } = await import("../../cluster/wait-for-cluster.ts");
    const { deadlineMs } = request;
    const waiting = { clusterId: cluster.id, login, skipHttpChecks: false, deadlineMs, created };
    return waitForCluster(context, backend, waiting);
  };
  await finishCreated({ kind, cluster, input }, wait, context);
}

async function removeForReplacement(
  backend: Backend<unknown>,
  clusterId: string,
  context: Context,
): Promise<void> {
  const { signal } = context;
  const { assertNoSnapshots, destroyCluster } = await import("../../cluster/destroy-clusters.ts");
  const cluster = await backend.find(clusterId, signal);
  if (cluster === undefined) return;
  await assertNoSnapshots(backend, cluster, signal);
  await destroyCluster(context, backend, clusterId);
}

function progressText(from: CreateInput["from"]): string {
  if (from === undefined) return "The installation has started";
  if ("location" in from) return "The nodes are those of the file";
  return `The nodes continue from snapshot "${from.name}" of cluster "${from.clusterId}"`;
}

export interface PreparedCreate extends CreationTarget<unknown> {
  readonly request: CreateRequest<unknown>;
  /** The login for the wait; undefined if the wait needs none. */
  readonly login: SuperuserLogin | undefined;
}

/** Checks everything that can be checked without creating anything. */
export async function prepareCreate(
  kind: BackendKind,
  input: CreateInput,
  context: Context,
): Promise<PreparedCreate> {
  const [{ timeLimit, tooSlow }, { maskedCommand }, { passedMs }] = await Promise.all([
    import("../../system/time-limit.ts"),
    import("../../system/masked-command.ts"),
    import("../../system/runtime.ts"),
  ]);
  if (!input.dryRun)
    (await import("../doctor/machine-checks.ts")).assertSshClient(context.environment);
  const login = await readLogin(input, context);
  const deadlineMs = passedMs(context.clock) + input.timeout;
  using limit = timeLimit(input.timeout, tooSlow("Creating", input.clusterId));
  const signal = AbortSignal.any([context.signal, limit.signal]);
  const installation = input.from === undefined ? installationRequest(input) : undefined;
  // Without a place for the cluster's keys, nothing else is worth checking.
  (await import("../../store/state-folder.ts")).stateFolder(context.environment);
  // An engine answers while this program reads the platform.
  const [backend, install] = await Promise.all([
    kind.open({ ...context, signal }, input),
    installation && checkedInstallation(installation, context, signal),
  ]);
  const request = {
    clusterId: input.clusterId,
    machines:
      input.from === undefined
        ? await newMachines(kind, input, install)
        : { from: fromOf(input.from, input) },
    installation,
    ownKey: input.sshKey,
    keepOnFailure: input.keepOnFailure,
    lifetimeMs: input.lifetime,
    deadlineMs,
    commandLine: maskedCommand([context.programName, ...(context.words ?? [])]),
    onAbandon: (describe: () => string) => context.onAbandon(describe),
  };
  return { request, backend, install, login };
}

async function showPlan(
  { request, ...target }: PreparedCreate,
  { environment, output, clock, columns, nameFlags, signal }: Context,
): Promise<void> {
  const [{ rehearseLock }, { summarizeCreation }, { timeLimit, tooSlow }, { passedMs }, { pairs }] =
    await Promise.all([
      import("../../cluster/create/lock-folder.ts"),
      import("../../cluster/create/plan-machines.ts"),
      import("../../system/time-limit.ts"),
      import("../../system/runtime.ts"),
      import("../../cli/layout.ts"),
    ]);
  await rehearseLock(environment, target.backend);
  using limit = timeLimit(
    request.deadlineMs - passedMs(clock),
    tooSlow("Creating", request.clusterId),
  );
  const summary = await summarizeCreation(request, target, AbortSignal.any([signal, limit.signal]));
  const lines = summary.lines.map(([label, text]) => [label, nameFlags(text)] as const);
  output.result({
    text: pairs(lines, columns),
    data: { plan: summary.facts } satisfies JsonResults["create"],
  });
}

async function checkedInstallation(
  installation: InstallationRequest,
  context: Context,
  signal: AbortSignal,
): Promise<InstallPlan> {
  const [{ assertWorkspace, planInstallation }, { whileWaitingFor }] = await Promise.all([
    import("../../cluster/plan-installation.ts"),
    import("../../system/time-limit.ts"),
  ]);
  const check = async () => planInstallation({ ...context, signal }, installation);
  const [install] = await Promise.all([
    whileWaitingFor(() => `the artifact ${installation.artifact.shown}`, check, signal),
    assertWorkspace(installation.artifact, installation.workspaceFolder),
  ]);
  return install;
}

/** Prompts for the password before the work begins, so that the user need not wait for the prompt. */
async function readLogin(
  input: CreateInput,
  context: Context,
): Promise<SuperuserLogin | undefined> {
  if (!input.wait || input.dryRun) return undefined;
  const [{ superuserLogin }, { accepted }] = await Promise.all([
    import("../../cluster/wait-for-cluster.ts"),
    import("../../model/checked.ts"),
  ]);
  const password = await readPassword(input.superuserPassword, "Superuser", context);
  // The variant of a snapshot isn't known yet. Only an enterprise cluster's wait uses the login.
  const variant = input.from === undefined ? input.variant : "enterprise";
  return accepted(superuserLogin(variant ?? "none", input.extraConfig ?? {}, password));
}

/** Uses the artifact's defaults for values that the user didn't choose. */
async function newMachines(
  kind: BackendKind,
  input: CreateInput,
  install: InstallPlan | undefined,
): Promise<NewMachines<unknown>> {
  const [{ chooseCounts }, { accepted }] = await Promise.all([
    import("../../cluster/create/choose-counts.ts"),
    import("../../model/checked.ts"),
  ]);
  return {
    variant: install?.variant ?? "none",
    distribution: input.linuxDistribution,
    counts: accepted(chooseCounts(requestedCounts(input), install?.platform)),
    options: accepted(await kind.parse(input)),
  };
}

const fromOf = (from: SnapshotCopy["from"], { sha256 }: CreateInput): SnapshotCopy["from"] =>
  "location" in from ? { ...from, sha256 } : from;

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
  genconfFiles: input.genconfDir ?? [],
  copyToMaster: input.copyToMaster.flat(),
  selinuxEnforcing: input.enableSelinuxEnforcing,
  workspaceFolder: input.workspaceDir,
});

/** Parses PLATFORM, and reads a folder completely. */
async function artifactLocation(
  given: string,
  { cwd }: { readonly cwd: string },
): Promise<ArtifactLocation> {
  const { locateArtifact } = await import("../../platform/artifact/artifact-request.ts");
  const outcome = await locateArtifact(given, cwd, whileOptionsAreRead());
  if (outcome.problems === undefined) return outcome.value;
  throw new BadValue(...outcome.problems);
}
