import { type Counts, type NodeRecord, type ClusterRecord, roles } from "../../cluster/record.ts";
import { generateKeyPair } from "../../ssh/keys.ts";
import { beginCreation, endCreation } from "../../system/creation-folder.ts";
import { runAtOnce } from "../../system/concurrency.ts";
import { version } from "../../version.ts";
import type { ProvisionRequest, Surroundings } from "../backend.ts";
import { userData } from "../cloud-init.ts";
import { wasRefused } from "./api-errors.ts";
import type { CloudApi } from "./api.ts";
import { isClusterExists } from "./cluster-exists.ts";
import type { CloudCreation } from "./cloud-creation.ts";
import { launchRole, type LaunchPlan } from "./launch.ts";
import { lifetimeMs } from "./lifetime.ts";
import { machineIds, type Making } from "./making.ts";
import { openIntroduction } from "./meet-node.ts";
import { createGroup, openGroup } from "./network.ts";
import { withGrace } from "./patience.ts";
import { costText } from "./prices.ts";
import { raiseNodes } from "./raise-nodes.ts";
import { countsText, type Place } from "./records.ts";
import { removeAbandoned } from "./remove-abandoned.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import { rollBack } from "./roll-back.ts";
import { sweep, takeInventory } from "./sweep.ts";
import { assertIdIsFree } from "./taken-id.ts";
import type { TagValues } from "./tags.ts";

const groupGraceMs = 5_000;

export interface Provisioning {
  readonly api: CloudApi;
  readonly place: Place;
  readonly request: ProvisionRequest<CloudCreation>;
  readonly resolve: (signal: AbortSignal) => Promise<ResolvedCreation>;
  readonly surroundings: Surroundings;
  readonly onNode: (node: NodeRecord) => void;
  /** Told of the creation's state as soon as there is something to roll back. */
  readonly onMaking: (making: Making) => void;
}

/** See Backend.provision. */
export async function provision(work: Provisioning, signal: AbortSignal): Promise<ClusterRecord> {
  const { request } = work;
  await beginCreation(request.directory, request.clusterId, request.creationId);
  const state: { making?: Making } = {};
  try {
    const resolved = await prepare(work, signal);
    const making = newMaking(work, resolved);
    state.making = making;
    work.onMaking(making);
    const cluster = await make(work, { making, resolved }, signal);
    await request.complete(cluster, signal);
    await endCreation(request.directory, "finished");
    return cluster;
  } catch (error) {
    if (state.making === undefined) await endCreation(request.directory, "removed");
    else await rollBack(work, { making: state.making, error }, signal);
    throw error;
  }
}

/** Clears the way, and finds what the machines are made of. */
async function prepare(work: Provisioning, signal: AbortSignal): Promise<ResolvedCreation> {
  const { api, request, surroundings } = work;
  await removeAbandoned(api, { root: work.place.root, clusterId: request.clusterId }, surroundings, signal);
  using step = surroundings.progress.start("Look around");
  const [inventory, resolved] = await Promise.all([takeInventory(api, signal), work.resolve(signal)]);
  assertIdIsFree(inventory, { clusterId: request.clusterId, region: api.region, nowMs: api.now(), leaving: [] });
  await sweep(api, inventory, { clusterId: request.clusterId, surroundings }, signal);
  step.done();
  return resolved;
}

function newMaking({ api, request }: Provisioning, resolved: ResolvedCreation): Making {
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
  work: Provisioning,
  { making, resolved }: { readonly making: Making; readonly resolved: ResolvedCreation },
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { api, request, surroundings } = work;
  const hostKey = generateKeyPair("first-contact");
  const groupId = await makeGroup(work, making, signal);
  const plan: LaunchPlan = {
    ...request.creation,
    clusterId: making.clusterId,
    directory: making.directory,
    image: resolved.image,
    // A group belongs to one network.
    subnets: resolved.subnets.filter((subnet) => subnet.vpcId === making.network.vpcId),
    groupId,
    userData: userData({
      user: resolved.image.user,
      publicKey: request.publicKey,
      hostKey,
      deadline: making.expiresAt,
    }),
    tags: making.tags,
  };
  const rules = { groupId, cidrs: resolved.cidrs, ports: [22, ...request.openPorts] };
  await launch(work, { making, plan, rules }, signal);
  const { directory, connections, deadlineMs } = request;
  const meet = await openIntroduction(
    { directory, connections, firstHostKey: hostKey.publicKey, deadlineMs, cidrs: resolved.cidrs, onNode: work.onNode },
    surroundings,
  );
  const { clusterId, creationId } = making;
  return await raiseNodes(
    api,
    { clusterId, creationId, machineIds: machineIds(making), place: work.place, meet },
    surroundings,
    signal,
  );
}

async function makeGroup({ api, surroundings }: Provisioning, making: Making, signal: AbortSignal): Promise<string> {
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
  { api, request, surroundings }: Provisioning,
  job: { readonly making: Making; readonly plan: LaunchPlan; readonly rules: Parameters<typeof openGroup>[1] },
  signal: AbortSignal,
): Promise<void> {
  const { clock, progress } = surroundings;
  const { making, plan, rules } = job;
  const total = machineCount(request.counts);
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

function machineCount(counts: Counts): number {
  return roles.reduce((sum, role) => sum + counts[role], 0);
}
