import { type ClusterRecord, nodeReference, type NodeRecord, roles } from "../../model/cluster-record.ts";
import { runAtOnce } from "../../system/run-at-once.ts";
import { creationDirectory } from "../../system/files/creation-folder.ts";
import { version } from "../../version.ts";
import type {
  Creation,
  CreationFolder,
  CreationRequest,
  CreationSummary,
  NodeName,
  NodeShell,
} from "../../model/creation.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { userData } from "../cloud-init.ts";
import { hasErrorId } from "../../errors.ts";
import { countsText, nodeCount } from "../../model/cluster-shape.ts";
import { awaitFirstBoot, usualFirstBootLimitMs } from "../first-boot.ts";
import { hostKeyPerRole } from "../first-host-keys.ts";
import { wasRefused } from "./api/api-errors.ts";
import type { CloudApi } from "./api/api.ts";
import type { CloudOptions } from "./cloud-options.ts";
import { describeInstances } from "./api/describe.ts";
import { describePlan } from "./launch/describe-plan.ts";
import { endLaunches } from "./removal/end-machines.ts";
import { launchRole, type LaunchLedger, type LaunchPlan } from "./launch/launch.ts";
import { leftoversText } from "./removal/leftovers-text.ts";
import { lifetimeMs } from "./launch/lifetime.ts";
import { lookAtMachines } from "./launch/look-at-machines.ts";
import { createGroup, type GroupRequest, type LaunchSubnet, openGroup } from "./launch/network.ts";
import { withGrace } from "./api/grace.ts";
import { costText } from "./launch/prices.ts";
import { type Place, toClusters } from "./records/records.ts";
import { removeCreation } from "./removal/remove-creation.ts";
import { metadata2Requirer, type RequireMetadata2 } from "./launch/require-metadata2.ts";
import type { ResolvedCreation } from "./launch/resolve-creation.ts";
import { silenceText } from "./launch/silence.ts";
import { sweep, takeInventory } from "./removal/sweep.ts";
import { assertIdIsFree } from "./launch/cluster-exists.ts";

const groupGraceMs = 5_000;

export interface CloudPlan {
  readonly api: CloudApi;
  readonly place: Place;
  readonly request: CreationRequest<CloudOptions>;
  readonly resolved: ResolvedCreation;
}

/** Everything requested so far, which is all that a rollback needs. */
interface Made {
  readonly folder: CreationFolder;
  readonly expiresAt: Date;
  readonly group: GroupRequest;
  /** Undefined: requested, but the answer isn't known. */
  groupId: string | undefined;
  readonly launches: LaunchLedger;
  launchedMs: number | undefined;
  /** Machines that the API was told to terminate. */
  ended: readonly string[];
}

/** See Creation. */
export class CloudCreation implements Creation {
  readonly summary: CreationSummary;
  readonly lookEveryMs = 5_000;
  readonly loginLimitMs = 10 * 60_000;
  readonly #plan: CloudPlan;
  readonly #surroundings: Surroundings;
  readonly #network: LaunchSubnet;
  readonly #hostKeys = hostKeyPerRole();
  readonly #requireMetadata2: RequireMetadata2;
  readonly #state: { made?: Made } = {};

  constructor(plan: CloudPlan, surroundings: Surroundings) {
    const [network] = plan.resolved.subnets;
    if (network === undefined) throw new TypeError("A creation was resolved without a subnet");
    this.#network = network;
    this.#plan = plan;
    this.#surroundings = surroundings;
    this.#requireMetadata2 = metadata2Requirer(plan.api, plan.resolved.image, surroundings.progress);
    this.summary = describePlan(plan.api, plan.request, plan.resolved);
  }

  /** The security group's name is unique in its network, which keeps two creates from using one id. */
  async claim(folder: CreationFolder, signal: AbortSignal): Promise<void> {
    await this.#clearTheWay(signal);
    const { api } = this.#plan;
    const { clock, progress } = this.#surroundings;
    using step = progress.start("Make the security group");
    // A group that is created after the attempt to remove it would stay. So this waits for a request under way, even when interrupted.
    using patient = withGrace(signal, groupGraceMs);
    signal.throwIfAborted();
    const made = this.#newMade(folder);
    this.#state.made = made;
    made.groupId = await createGroup(api, made.group, clock, patient.signal).catch((error: unknown) => {
      if (wasRefused(error) || hasErrorId(error, "cluster-exists")) delete this.#state.made;
      throw error;
    });
    signal.throwIfAborted();
    step.done();
  }

  async #clearTheWay(signal: AbortSignal): Promise<void> {
    const { api, request } = this.#plan;
    const { clusterId } = request;
    using step = this.#surroundings.progress.start("Look around");
    const inventory = await takeInventory(api, signal);
    assertIdIsFree(inventory, { clusterId, region: api.region, nowMs: api.now(), leaving: [] });
    await sweep(api, inventory, { clusterId, surroundings: this.#surroundings }, signal);
    step.done();
  }

  #newMade(folder: CreationFolder): Made {
    const { api, request, resolved } = this.#plan;
    const { clusterId, options } = request;
    // In whole seconds and by the API's clock, because this machine's clock may be wrong.
    const expiresAt = new Date(Math.floor((api.now() + lifetimeMs) / 1000) * 1000);
    const tags = {
      clusterId,
      creationId: folder.creationId,
      counts: countsText(request.counts),
      variant: request.variant,
      ...(request.webScheme !== undefined && { webScheme: request.webScheme }),
      distribution: options.image === undefined ? request.distribution : `image ${options.image.id}`,
      sshUser: resolved.image.user,
      expiresAt: expiresAt.toISOString(),
      createdBy: version,
    };
    const group = { clusterId, vpcId: this.#network.vpcId, tags };
    return { folder, expiresAt, group, groupId: undefined, launches: new Map(), launchedMs: undefined, ended: [] };
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { api, request, resolved } = this.#plan;
    const { clock, progress } = this.#surroundings;
    const made = this.#claimed();
    const groupId = made.groupId ?? "";
    const total = nodeCount(request.counts);
    progress.note(`Launching ${total} machines in ${api.region}: ${costText(request.options.instanceType, total)}.`);
    using step = progress.start("Launch");
    const plan = this.#launchPlan(made, { groupId, publicKey });
    const wanted = roles.filter((role) => request.counts[role] > 0);
    const launches = wanted.map((role) => async () => {
      await launchRole(api, { plan, role, count: request.counts[role], ledger: made.launches }, clock, signal);
    });
    const rules = { groupId, cidrs: resolved.cidrs, ports: [22, ...request.openPorts] };
    const tasks = [...launches, async () => openGroup(api, rules, clock, signal)];
    // Waits for all of them, even after one fails, so that a rollback knows what to terminate.
    await runAtOnce(tasks, tasks.length, async (task) => task(), signal);
    made.launchedMs = clock.now();
    step.done();
  }

  #launchPlan(
    made: Made,
    { groupId, publicKey }: { readonly groupId: string; readonly publicKey: string },
  ): LaunchPlan {
    const { request, resolved } = this.#plan;
    return {
      ...request.options,
      clusterId: request.clusterId,
      directory: made.folder.directory,
      image: resolved.image,
      // A group belongs to one network.
      subnets: resolved.subnets.filter((subnet) => subnet.vpcId === this.#network.vpcId),
      groupId,
      userDataOf: (role) =>
        userData({
          user: resolved.image.user,
          publicKey,
          hostKey: this.#hostKeys.of({ role, index: 0 }),
          deadline: made.expiresAt,
        }),
      tags: made.group.tags,
    };
  }

  /** The ids that tell our machines from another creation's are unknown until the launch is answered. */
  async look(signal: AbortSignal): Promise<ClusterRecord> {
    const { api, place, request } = this.#plan;
    const { folder, launchedMs } = this.#claimed();
    if (launchedMs === undefined) return this.#emptyCluster();
    const { clusterId } = request;
    const watching = { clusterId, creationId: folder.creationId, machineIds: this.#machineIds, place, launchedMs };
    return (await lookAtMachines(api, watching, this.#surroundings.clock, signal)) ?? this.#emptyCluster();
  }

  async describe(signal: AbortSignal): Promise<ClusterRecord> {
    const { api, place } = this.#plan;
    const instances = await describeInstances(api, { creationId: this.#claimed().folder.creationId }, signal);
    const clusters = toClusters(instances, place);
    return clusters.find(({ id }) => id === this.#plan.request.clusterId) ?? this.#emptyCluster();
  }

  /** No machine is visible yet, or none is visible any more. */
  #emptyCluster(): ClusterRecord {
    const { place, request } = this.#plan;
    const { folder, expiresAt } = this.#claimed();
    return {
      id: request.clusterId,
      creationId: folder.creationId,
      backend: "cloud",
      region: place.region,
      variant: request.variant,
      distribution: request.distribution,
      state: "incomplete",
      createdAt: undefined,
      expiresAt,
      nodes: [],
      directory: creationDirectory(place.root, request.clusterId, folder.creationId),
    };
  }

  firstHostKeyOf(node: NodeName): string {
    return this.#hostKeys.of(node).publicKey;
  }

  async finishBoot(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void> {
    const name = nodeReference(node);
    const machine = { name, hasDeadline: true, limitMs: usualFirstBootLimitMs };
    const complaints = await awaitFirstBoot(shell, machine, signal);
    if (complaints !== undefined) {
      this.#surroundings.progress.detail(1, `${name}: cloud-init complained: ${complaints}`);
    }
    await this.#requireMetadata2(node.id, name, signal);
  }

  async whyUnreachable(signal: AbortSignal): ReturnType<Creation["whyUnreachable"]> {
    const reason = await silenceText(this.#surroundings.environment, this.#plan.resolved.cidrs, signal);
    const hint = "Create the cluster again, naming the addresses that must reach it with `adminCidrs`.";
    return reason === undefined ? undefined : { reason, hint };
  }

  async stop(signal: AbortSignal): Promise<void> {
    const { made } = this.#state;
    if (made === undefined) return;
    made.ended = await endLaunches(this.#plan.api, [...made.launches.values()], this.#surroundings.clock, signal);
  }

  async remove(signal: AbortSignal): Promise<string | undefined> {
    const { made } = this.#state;
    if (made === undefined) return undefined;
    const groupId = made.groupId ?? (await this.#learnGroup(made, signal));
    const { clusterId } = this.#plan.request;
    const remains = { clusterId, creationId: made.folder.creationId, machineIds: made.ended, groupId };
    return leftoversText(await removeCreation(this.#plan.api, remains, this.#surroundings, signal), made.expiresAt);
  }

  /** If the answer was lost, requests the group again, so that a request still under way can't leave one behind. */
  async #learnGroup(made: Made, signal: AbortSignal): Promise<string | undefined> {
    try {
      return await createGroup(this.#plan.api, made.group, this.#surroundings.clock, signal);
    } catch (error) {
      if (hasErrorId(error, "cluster-exists")) return undefined;
      throw error;
    }
  }

  describeKept(): string {
    const ids = this.#machineIds;
    const what = ids.length === 0 ? "no machines" : `machines ${ids.join(", ")}`;
    return `${what}. They end by themselves at ${this.#claimed().expiresAt.toISOString()}.`;
  }

  describeRemains(): string | undefined {
    const { made } = this.#state;
    if (made === undefined) return undefined;
    const ids = this.#machineIds;
    const machines = ids.length === 0 ? "Machines of this creation" : `Machines ${ids.join(", ")}`;
    const group = made.groupId === undefined ? "its security group" : `security group ${made.groupId}`;
    return `${machines} may be left in region ${this.#plan.api.region}: they end by themselves at ${made.expiresAt.toISOString()}; the next create there removes ${group}.`;
  }

  get #machineIds(): readonly string[] {
    return [...(this.#state.made?.launches.values() ?? [])].flatMap((launch) => launch.machineIds ?? []);
  }

  #claimed(): Made {
    const { made } = this.#state;
    if (made === undefined) throw new TypeError("The id has not been claimed");
    return made;
  }
}
