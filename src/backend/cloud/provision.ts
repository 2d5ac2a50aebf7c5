import { type ClusterRecord, roles } from "../../model/cluster-record.ts";
import { runAtOnce } from "../../system/concurrency.ts";
import { version } from "../../version.ts";
import { userData } from "../cloud-init.ts";
import { isClusterExists } from "../cluster-exists.ts";
import { countsText, nodeCount } from "../cluster-shape.ts";
import { hostKeyPerRole } from "../first-host-keys.ts";
import { openIntroduction } from "../meet-node.ts";
import { raiseNodes } from "../raise-nodes.ts";
import { removeAbandoned } from "../remove-abandoned.ts";
import { type Provisioning, runCreation } from "../run-creation.ts";
import { wasRefused } from "./api-errors.ts";
import type { CloudApi } from "./api.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { cloudIntroduction } from "./introduction.ts";
import { launchRole, type LaunchPlan } from "./launch.ts";
import { lifetimeMs } from "./lifetime.ts";
import { machineIds, type Making } from "./making.ts";
import { createGroup, openGroup } from "./network.ts";
import { withGrace } from "./patience.ts";
import { costText } from "./prices.ts";
import type { Place } from "./records.ts";
import { removeOneAbandoned } from "./remove-abandoned.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import { cloudRollBack } from "./roll-back.ts";
import { sweep, takeInventory } from "./sweep.ts";
import { assertIdIsFree } from "./taken-id.ts";
import type { TagValues } from "./tags.ts";
import { watchMachines } from "./watch-machines.ts";

const groupGraceMs = 5_000;
/** Between two requests for all machines. */
const longestPauseMs = 5_000;

export interface CloudProvisioning extends Provisioning<CloudOptions, ResolvedCreation, Making> {
  readonly api: CloudApi;
  readonly place: Place;
}

/** See Backend.provision. */
export async function provision(work: CloudProvisioning, signal: AbortSignal): Promise<ClusterRecord> {
  return runCreation(
    {
      request: work.request,
      progress: work.surroundings.progress,
      prepare: async (inner) => {
        const resolved = await prepare(work, inner);
        const making = newMaking(work, resolved);
        work.onMaking(making);
        return { making, resolved };
      },
      make: async (made, inner) => make(work, made, inner),
      rollBackOf: ({ making }) => cloudRollBack(work, making),
    },
    signal,
  );
}

/** Clears the way, and finds what the machines are made of. */
async function prepare(work: CloudProvisioning, signal: AbortSignal): Promise<ResolvedCreation> {
  const { api, request, surroundings } = work;
  await removeAbandoned(
    { root: work.place.root, clusterId: request.clusterId },
    async (abandoned) => removeOneAbandoned(api, abandoned, surroundings, signal),
    surroundings.progress,
  );
  using step = surroundings.progress.start("Look around");
  const [inventory, resolved] = await Promise.all([takeInventory(api, signal), work.resolve(signal)]);
  assertIdIsFree(inventory, { clusterId: request.clusterId, region: api.region, nowMs: api.now(), leaving: [] });
  await sweep(api, inventory, { clusterId: request.clusterId, surroundings }, signal);
  step.done();
  return resolved;
}

function newMaking({ api, request }: CloudProvisioning, resolved: ResolvedCreation): Making {
  const { clusterId, creationId, directory } = request;
  // In whole seconds, and by the API's clock: this machine's may be off.
  const expiresAt = new Date(Math.floor((api.now() + lifetimeMs) / 1000) * 1000);
  const [network] = resolved.subnets;
  if (network === undefined) throw new TypeError("A creation was resolved without a subnet");
  const tags: TagValues = {
    clusterId,
    creationId,
    counts: countsText(request.counts),
    variant: request.variant,
    ...(request.webScheme !== undefined && { webScheme: request.webScheme }),
    distribution: request.creation.image === undefined ? request.distribution : `image ${request.creation.image.id}`,
    sshUser: resolved.image.user,
    expiresAt: expiresAt.toISOString(),
    createdBy: version,
  };
  return { clusterId, creationId, directory, expiresAt, network, tags, launches: new Map(), group: { state: "none" } };
}

async function make(
  work: CloudProvisioning,
  { making, resolved }: { readonly making: Making; readonly resolved: ResolvedCreation },
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { api, request, surroundings } = work;
  const firstHostKeys = hostKeyPerRole();
  const groupId = await makeGroup(work, making, signal);
  const plan: LaunchPlan = {
    ...request.creation,
    clusterId: making.clusterId,
    directory: making.directory,
    image: resolved.image,
    // A group belongs to one network.
    subnets: resolved.subnets.filter((subnet) => subnet.vpcId === making.network.vpcId),
    groupId,
    userDataOf: (role) =>
      userData({
        user: resolved.image.user,
        publicKey: request.publicKey,
        hostKey: firstHostKeys.of({ role, index: 0 }),
        deadline: making.expiresAt,
      }),
    tags: making.tags,
  };
  const rules = { groupId, cidrs: resolved.cidrs, ports: [22, ...request.openPorts] };
  await launch(work, { making, plan, rules }, signal);
  const { directory, connections, deadlineMs } = request;
  const contact = { directory, connections, firstHostKeys, deadlineMs, cidrs: resolved.cidrs };
  const introduction = cloudIntroduction({ ...contact, onNode: work.onNode }, surroundings);
  const meet = await openIntroduction(introduction, surroundings);
  const { clusterId, creationId } = making;
  const ids = machineIds(making);
  const look = watchMachines(api, { clusterId, creationId, machineIds: ids, place: work.place }, surroundings.clock);
  return await raiseNodes({ count: ids.length, longestPauseMs, look, meet }, surroundings, signal);
}

async function makeGroup(
  { api, surroundings }: CloudProvisioning,
  making: Making,
  signal: AbortSignal,
): Promise<string> {
  const { clusterId, network, tags } = making;
  using step = surroundings.progress.start("Make the security group");
  // A group that is made after its removal was tried would stay: a request under way is waited for, also when interrupted.
  using patient = withGrace(signal, groupGraceMs);
  signal.throwIfAborted();
  making.group = { state: "asked" };
  const group = { clusterId, vpcId: network.vpcId, tags };
  const id = await createGroup(api, group, surroundings.clock, patient.signal).catch((error: unknown) => {
    if (wasRefused(error) || isClusterExists(error)) making.group = { state: "none" };
    throw error;
  });
  making.group = { state: "made", id };
  signal.throwIfAborted();
  step.done();
  return id;
}

async function launch(
  { api, request, surroundings }: CloudProvisioning,
  job: { readonly making: Making; readonly plan: LaunchPlan; readonly rules: Parameters<typeof openGroup>[1] },
  signal: AbortSignal,
): Promise<void> {
  const { clock, progress } = surroundings;
  const { making, plan, rules } = job;
  const total = nodeCount(request.counts);
  progress.note(`Launching ${total} machines in ${api.region}: ${costText(plan.instanceType, total)}.`);
  using step = progress.start("Launch");
  const wanted = roles.filter((role) => request.counts[role] > 0);
  const launches = wanted.map((role) => async () => {
    await launchRole(api, { plan, role, count: request.counts[role], ledger: making.launches }, clock, signal);
  });
  const tasks = [...launches, async () => openGroup(api, rules, clock, signal)];
  // All are awaited, also after one has failed: what a roll-back must end is then known.
  await runAtOnce(tasks, tasks.length, async (task) => task(), signal);
  step.done();
}
