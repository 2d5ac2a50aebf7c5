import { endText, numbered } from "../../system/amounts.ts";
import { hasErrorId, messageOf } from "../../errors.ts";
import { optionName } from "../../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeReference,
  roles,
  nodeCount,
} from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { creationDirectory } from "../../store/creation-folder.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { type Runtime, passedMs } from "../../system/runtime.ts";
import { afterAbort } from "../../system/time-limit.ts";
import type {
  Creation,
  CreationFolder,
  CreationRemains,
  CreationSummary,
  FirstLogin,
  NodeShell,
} from "../contract.ts";
import {
  awaitFirstBoot,
  hostKeyPerRole,
  userData,
  usualFirstBootLimitMs,
} from "../shared/first-boot.ts";
import { wasRefused } from "./api/api-errors.ts";
import { type CloudApi, describeInstances } from "./api/api.ts";
import { retryingApi } from "./api/open-api.ts";
import { type LaunchPlan, launchRole } from "./launch/launch.ts";
import {
  type RequireMetadata2,
  lookAtMachines,
  metadata2Requirer,
  whyUnreachableText,
} from "./launch/look-at-machines.ts";
import { type LaunchSubnet, assertIdIsFree, createGroup, openGroup } from "./launch/network.ts";
import {
  assertOffered,
  type CloudPlan,
  type RequestedResources,
  describePlan,
  newRequestedResources,
} from "./plan.ts";
import { costText } from "./lifetime.ts";
import { toClusters } from "./records.ts";
import { endLaunches, leftoversText, removeCreation } from "./removal.ts";
import { removeExpired, takeInventory } from "./remove-expired.ts";

const groupGraceMs = 5_000;

export class CloudCreation implements Creation {
  readonly summary: CreationSummary;
  readonly firstLogin = {
    lookEveryMs: 5_000,
    limitMs: 10 * 60_000,
    everyMs: 1_500,
    hostKey: (node) => ({ publicKey: this.#hostKeys.of(node).publicKey, isPrivate: false }),
    finishBoot: async (node, shell, signal) => this.#finishBoot(node, shell, signal),
    whyUnreachable: async (signal) => this.#whyUnreachable(signal),
  } satisfies FirstLogin;
  readonly #plan: CloudPlan;
  /** For everything except rolling back, which has its own retries. */
  readonly #retryingApi: CloudApi;
  readonly #runtime: Runtime;
  readonly #network: LaunchSubnet;
  readonly #hostKeys = hostKeyPerRole();
  readonly #requireMetadata2: RequireMetadata2;
  readonly #withoutAddress = new Map<string, number>();
  readonly #state: { requested?: RequestedResources } = {};

  constructor(plan: CloudPlan, runtime: Runtime) {
    const [network] = plan.resolved.subnets;
    if (network === undefined) throw new TypeError("The creation has no subnet");
    this.#network = network;
    this.#plan = plan;
    this.#runtime = runtime;
    this.#retryingApi = retryingApi(plan.api, runtime);
    this.#requireMetadata2 = metadata2Requirer(
      this.#retryingApi,
      plan.resolved.image,
      runtime.progress,
    );
    this.summary = describePlan(plan.api, plan.request, plan.resolved);
  }

  /** Throws what only the launch would find out. */
  async rehearse(signal: AbortSignal): Promise<void> {
    const { request, resolved } = this.#plan;
    try {
      await assertOffered(
        this.#retryingApi,
        { ...request.options, subnets: resolved.subnets },
        signal,
      );
    } catch (error) {
      if (!hasErrorId(error, "not-permitted")) throw error;
      this.#runtime.progress.note(
        `Not checked whether the region offers ${request.options.instanceType}: ${messageOf(error)}`,
      );
    }
  }

  /** The name of a security group is unique in its network, so only one `create` can claim an id. */
  async claim(folder: CreationFolder, signal: AbortSignal): Promise<void> {
    await this.#assertIdIsFree(signal);
    const { clock, progress } = this.#runtime;
    using step = progress.start("Create the security group");
    // If the request were cut off, the group could be created after the attempt to remove it, and
    // stay. So this waits for the answer, even when interrupted.
    using graceful = withGrace(signal, groupGraceMs);
    signal.throwIfAborted();
    const requested = newRequestedResources(this.#plan, { folder, vpcId: this.#network.vpcId });
    this.#state.requested = requested;
    requested.groupId = await createGroup(
      this.#retryingApi,
      requested.group,
      clock,
      graceful.signal,
    ).catch((error: unknown) => {
      if (wasRefused(error) || hasErrorId(error, "cluster-exists")) delete this.#state.requested;
      throw error;
    });
    signal.throwIfAborted();
    step.done();
  }

  async #assertIdIsFree(signal: AbortSignal): Promise<void> {
    const { clusterId } = this.#plan.request;
    const api = this.#retryingApi;
    using step = this.#runtime.progress.start("Check for existing clusters");
    const inventory = await takeInventory(api, signal);
    assertIdIsFree(inventory, { clusterId, region: api.region, nowMs: api.now(), leaving: [] });
    await removeExpired({ ...this.#runtime, signal }, api, inventory, clusterId);
    step.done();
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { request, resolved } = this.#plan;
    const api = this.#retryingApi;
    const { clock, progress } = this.#runtime;
    const requested = this.#claimed();
    const groupId = requested.groupId ?? "";
    const total = nodeCount(this.summary.counts);
    progress.note(
      `Launching ${numbered(total, "machine")} in ${api.region}: ${costText(request.options.instanceType, total)}.`,
    );
    using step = progress.start("Launch");
    const plan = this.#launchPlan(requested, { groupId, publicKey });
    const wanted = roles.filter((role) => request.counts[role] > 0);
    const launches = wanted.map((role) => async () => {
      await launchRole(
        api,
        { plan, role, count: request.counts[role], ledger: requested.launches },
        clock,
        signal,
      );
    });
    const rules = { groupId, cidrs: resolved.cidrs, ports: [22, ...request.openPorts] };
    const tasks = [...launches, async () => openGroup(api, rules, clock, signal)];
    // Waits for all of them, even after one fails, so that a rollback knows what to terminate.
    await mapConcurrently(tasks, tasks.length, async (task) => task(), signal);
    requested.launchedMs = passedMs(clock);
    step.done();
  }

  #launchPlan(
    requested: RequestedResources,
    { groupId, publicKey }: { readonly groupId: string; readonly publicKey: string },
  ): LaunchPlan {
    const { request, resolved } = this.#plan;
    return {
      ...request.options,
      clusterId: request.clusterId,
      directory: requested.folder.directory,
      image: resolved.image,
      // A group belongs to one network.
      subnets: resolved.subnets.filter((subnet) => subnet.vpcId === this.#network.vpcId),
      groupId,
      userDataOf: (role) =>
        userData({
          user: resolved.image.user,
          publicKey,
          hostKey: this.#hostKeys.of({ role, index: 0 }),
          deadline: requested.expiresAt,
        }),
      tags: requested.group.tags,
    };
  }

  /**
   * Shows the cluster without nodes until the launch is answered, because the ids of its machines
   * are unknown before that.
   */
  async look(signal: AbortSignal): Promise<ClusterRecord> {
    const { regionFolder, request } = this.#plan;
    const { folder, launchedMs } = this.#claimed();
    if (launchedMs === undefined) return this.#emptyCluster();
    const { clusterId } = request;
    const watching = {
      clusterId,
      creationId: folder.creationId,
      machineIds: this.#machineIds,
      regionFolder,
      launchedMs,
      withoutAddress: this.#withoutAddress,
    };
    return (
      (await lookAtMachines(this.#retryingApi, watching, this.#runtime.clock, signal)) ??
      this.#emptyCluster()
    );
  }

  async describe(signal: AbortSignal): Promise<ClusterRecord> {
    const { api, regionFolder } = this.#plan;
    const instances = await describeInstances(
      api,
      { creationId: this.#claimed().folder.creationId },
      signal,
    );
    const clusters = toClusters(instances, regionFolder);
    return clusters.find(({ id }) => id === this.#plan.request.clusterId) ?? this.#emptyCluster();
  }

  /** No machine is visible yet, or none is visible any more. */
  #emptyCluster(): ClusterRecord {
    const { regionFolder, request } = this.#plan;
    const { folder, expiresAt } = this.#claimed();
    return {
      id: request.clusterId,
      creationId: folder.creationId,
      backend: "cloud",
      region: regionFolder.region,
      variant: request.variant,
      distribution: request.distribution,
      state: "incomplete",
      createdAt: undefined,
      expiresAt,
      nodes: [],
      directory: creationDirectory(regionFolder.root, request.clusterId, folder.creationId),
    };
  }

  async #finishBoot(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void> {
    const name = nodeReference(node);
    const machine = { name, hasDeadline: true, limitMs: usualFirstBootLimitMs };
    const complaints = await awaitFirstBoot(shell, machine, signal);
    if (complaints !== undefined) {
      this.#runtime.progress.detail(1, `${name}: cloud-init reported: ${outside(complaints)}`);
    }
    await this.#requireMetadata2(node.id, name, signal);
  }

  async #whyUnreachable(
    signal: AbortSignal,
  ): ReturnType<NonNullable<FirstLogin["whyUnreachable"]>> {
    const reason = await whyUnreachableText(
      { ...this.#runtime, signal },
      this.#plan.resolved.cidrs,
    );
    const hint = `Create the cluster again, and pass the addresses that must reach it with ${optionName("adminCidrs")}.`;
    return reason === undefined ? undefined : { reason, hint };
  }

  async stop(signal: AbortSignal): Promise<void> {
    const { requested } = this.#state;
    if (requested === undefined) return;
    requested.ended = await endLaunches(
      this.#plan.api,
      [...requested.launches.values()],
      this.#runtime.clock,
      signal,
    );
  }

  async remove(signal: AbortSignal): Promise<string | undefined> {
    const { requested } = this.#state;
    if (requested === undefined) return undefined;
    const groupId = requested.groupId ?? (await this.#requestGroupAgain(requested, signal));
    const { clusterId } = this.#plan.request;
    const remains = {
      clusterId,
      creationId: requested.folder.creationId,
      machineIds: requested.ended,
      groupId,
    };
    const { api } = this.#plan;
    return leftoversText(
      await removeCreation({ ...this.#runtime, signal }, api, remains),
      requested.expiresAt,
      api.now(),
    );
  }

  /**
   * The answer to the first request was lost. Requests the group again and returns its id, so that
   * it can be removed even if the first request is carried out late.
   */
  async #requestGroupAgain(
    requested: RequestedResources,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      return await createGroup(this.#plan.api, requested.group, this.#runtime.clock, signal);
    } catch (error) {
      if (hasErrorId(error, "cluster-exists")) return undefined;
      throw error;
    }
  }

  remains(): CreationRemains | undefined {
    const { requested } = this.#state;
    if (requested === undefined) return undefined;
    const ids = this.#machineIds.join(", ");
    const group =
      requested.groupId === undefined
        ? "its security group"
        : `security group ${requested.groupId}`;
    const end = `terminate automatically at ${endText(requested.expiresAt, this.#plan.api.now())}`;
    return {
      kept: `${ids === "" ? "no machines" : `machines ${ids}`}. They ${end}.`,
      left: `${ids === "" ? "Machines of this creation" : `Machines ${ids}`} may be left in region ${this.#plan.api.region}: they ${end}; the next create there removes ${group}.`,
    };
  }

  get #machineIds(): readonly string[] {
    return [...(this.#state.requested?.launches.values() ?? [])].flatMap(
      (launch) => launch.machineIds ?? [],
    );
  }

  #claimed(): RequestedResources {
    const { requested } = this.#state;
    if (requested === undefined) throw new TypeError("The id has not been claimed");
    return requested;
  }
}

/**
 * Returns a signal that is aborted `graceMs` after the given one, with the same reason, unless it is disposed of first.
 * Use it for requests that must not be cut off halfway because no token makes them safe to repeat.
 */
export function withGrace(
  signal: AbortSignal,
  graceMs: number,
): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController();
  const waiting = afterAbort(signal, graceMs, () => late.abort(signal.reason));
  return { signal: late.signal, [Symbol.dispose]: () => waiting[Symbol.dispose]() };
}
