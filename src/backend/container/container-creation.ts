import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterRecord, type NodeRecord, countsText, nodeCount } from "../../model/cluster-record.ts";
import type { Runtime } from "../../system/runtime.ts";
import { version } from "../../version.ts";
import type {
  Creation,
  CreationFolder,
  CreationRemains,
  CreationRequest,
  CreationSummary,
  FirstHostKey,
  NodeName,
} from "../contract.ts";
import { hostKeyPerNode } from "../shared/first-boot.ts";
import { endAfter } from "../shared/lifetimes.ts";
import { machineFailed } from "../shared/machine-errors.ts";
import { consoleOutput } from "./console-output.ts";
import { defaultDistribution } from "./distributions.ts";
import { type Engine, removalCommand } from "./engine/engine.ts";
import { type CreatedNode, type LaunchPlan, createFirstNode, identityArchive, launchNodes } from "./launch/launch.ts";
import { obtainNodeImage } from "./launch/node-image.ts";
import { rememberedRights, systemFlags } from "./launch/system-flags.ts";
import type { ContainerOptions } from "./options.ts";
import { type ResolvedCreation, describePlan } from "./plan.ts";
import { type CreationName, type LabelValues, labelArguments, networkName } from "./records/labels.ts";
import { describeContainers, inspectContainers, readNodes } from "./records/read-containers.ts";
import { assertIdIsFree, readInventory, toClusters } from "./records/records.ts";
import { removeCreation, stopCreation } from "./remove-creation.ts";

export interface ContainerPlan {
  readonly engine: Engine;
  /** The folder of this machine's creations with the engine. */
  readonly root: string;
  readonly request: CreationRequest<ContainerOptions>;
  readonly resolved: ResolvedCreation;
  /** Whether an earlier creation of this id left something that is removed before the id is claimed. */
  readonly hasLeftovers: boolean;
}

/** See Creation. */
export class ContainerCreation implements Creation {
  readonly summary: CreationSummary;
  readonly nodeCount: number;
  readonly pace = { lookEveryMs: 1_000, loginLimitMs: 10 * 60_000, loginEveryMs: 500 };
  readonly #plan: ContainerPlan;
  readonly #runtime: Runtime;
  readonly #hostKeys = hostKeyPerNode();
  /** The containers that have been started. */
  readonly #started: string[] = [];
  /** All nodes that the engine has ever shown, by their ids. */
  readonly #seen = new Map<string, NodeRecord>();
  /** `name`: set once something was requested. `first`, `launch`: set once the id is ours. */
  readonly #made: { name?: CreationName; launch?: LaunchPlan; first?: CreatedNode; expiresAt?: Date | undefined } = {};

  constructor(plan: ContainerPlan, runtime: Runtime) {
    this.#plan = plan;
    this.#runtime = runtime;
    this.nodeCount = nodeCount(plan.request.counts);
    this.summary = describePlan(plan.request, plan.resolved, runtime.clock);
  }

  async claim({ creationId }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { engine, request, resolved, root } = this.#plan;
    const { clusterId, counts, options, variant, webUi } = request;
    await this.#assertLeftoversAreGone(signal);
    this.#noteDefaultDistribution();
    const { progress } = this.#runtime;
    await obtainNodeImage(engine, resolved.image, { progress, logFile: join(root, "node-image.log") }, signal);
    const expiresAt = endAfter(request.lifetimeMs, this.#runtime.clock);
    this.#made.expiresAt = expiresAt;
    const labels = {
      clusterId,
      creationId,
      counts: countsText(counts),
      variant,
      ...(webUi !== undefined && { webUi }),
      distribution: resolved.distribution,
      reach: resolved.reach,
      ...(expiresAt !== undefined && { expiresAt: expiresAt.toISOString() }),
      createdBy: version,
    };
    using step = this.#runtime.progress.start("Reserve the cluster id");
    signal.throwIfAborted();
    const name = { clusterId, creationId };
    this.#made.name = name;
    const { facts, image } = resolved;
    const tried = rememberedRights(engine, { facts, image: image.name, memory: this.#rightsMemory }, signal);
    const [, rights] = await both(createNetwork(engine, { ...name, labels }), tried);
    const system = systemFlags(engine.kind, facts, rights);
    const network = networkName(name);
    const plan = { clusterId, counts, options, image: image.name, reach: resolved.reach, network, labels, system };
    signal.throwIfAborted();
    this.#made.first = await createFirstNode(engine, plan);
    this.#made.launch = plan;
    step.done();
  }

  async #assertLeftoversAreGone(signal: AbortSignal): Promise<void> {
    const { engine, request, root, hasLeftovers } = this.#plan;
    if (!hasLeftovers) return;
    const { clusterId } = request;
    assertIdIsFree(engine, await readInventory(engine, { clusterId }, root, signal), { clusterId, leaving: [] });
  }

  #noteDefaultDistribution(): void {
    const { request, resolved } = this.#plan;
    if (request.distribution !== defaultDistribution || request.options.nodeImage !== undefined) return;
    const { cgroupVersion } = resolved.facts;
    const reason = request.needsApt ? "for a platform with packages for apt" : `under cgroups ${cgroupVersion}`;
    this.#runtime.progress.note(`Nodes run ${resolved.distribution}, the default ${reason}.`);
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { first, launch: plan } = this.#made;
    if (first === undefined || plan === undefined) throw new TypeError("launch() was called before claim()");
    using step = this.#runtime.progress.start("Start containers");
    const { clock } = this.#runtime;
    const identityOf = async (node: NodeName): Promise<Uint8Array> =>
      identityArchive({ hostKey: this.#hostKeys.of(node), publicKey, deadline: this.#made.expiresAt }, clock.now());
    try {
      const onStart = (id: string): void => void this.#started.push(id);
      await launchNodes(this.#plan.engine, { plan, first, identityOf, onStart }, signal);
    } catch (error) {
      await this.#forgetRights();
      throw error;
    }
    step.done();
  }

  async look(signal: AbortSignal): Promise<ClusterRecord> {
    const cluster = this.#read(await inspectContainers(this.#plan.engine, this.#started, signal));
    this.#assertNoneRemoved(cluster.nodes);
    const ended = cluster.nodes.find(({ state }) => ["stopped", "ending", "ended"].includes(state));
    if (ended === undefined) return cluster;
    await this.#forgetRights();
    const said = await consoleOutput(this.#plan.engine, ended, signal).catch(() => "");
    const hint =
      "The node image must start systemd as /sbin/init, with sshd. Run the doctor command to see what this machine lacks.";
    throw machineFailed(ended, { said, hint });
  }

  #assertNoneRemoved(nodes: readonly NodeRecord[]): void {
    for (const node of nodes) this.#seen.set(node.id, node);
    const removed = [...this.#seen.values()].find(({ id }) => !nodes.some((node) => node.id === id));
    if (removed === undefined) return;
    const stateReason = "the container was removed";
    throw machineFailed({ ...removed, stateReason }, { said: "", hint: "If that was a mistake, create it again." });
  }

  async describe(signal: AbortSignal): Promise<ClusterRecord> {
    return this.#read(await describeContainers(this.#plan.engine, { creationId: this.#creationId }, signal));
  }

  #read(described: readonly unknown[]): ClusterRecord {
    const { request, resolved, root } = this.#plan;
    const { clusterId, counts, variant, webUi } = request;
    const creationId = this.#creationId;
    const { expiresAt } = this.#made;
    const network = { clusterId, creationId, counts, variant, webUi, distribution: resolved.distribution, expiresAt };
    const containers = readNodes(described, [network]).read;
    const [cluster] = toClusters({ containers, networks: [network], abandoned: new Set() }, root);
    if (cluster === undefined) throw new TypeError("The network of this creation was not read as a cluster");
    return cluster;
  }

  get #creationId(): string {
    return this.#made.name?.creationId ?? "";
  }

  /** Each container gets its own, from here through the engine. */
  firstHostKey(node: NodeName): FirstHostKey {
    return { publicKey: this.#hostKeys.of(node).publicKey, isPrivate: true };
  }

  async whyUnreachable(): Promise<undefined> {
    await this.#forgetRights();
  }

  async stop(signal: AbortSignal): Promise<void> {
    const { name } = this.#made;
    if (name === undefined) return;
    await stopCreation(this.#plan.engine, name, signal);
    await this.#forgetRights();
  }

  async remove(signal: AbortSignal): Promise<string | undefined> {
    const { name } = this.#made;
    if (name === undefined) return undefined;
    return await removeCreation(this.#plan.engine, name, this.#runtime.clock, signal);
  }

  remains(): CreationRemains | undefined {
    if (this.#made.name === undefined) return undefined;
    const how = `Remove them with: ${removalCommand(this.#plan.engine, this.#plan.request.clusterId)}`;
    return { kept: `its containers. ${how}`, left: `Containers and a network may be left. ${how}` };
  }

  get #rightsMemory(): string {
    return join(this.#plan.root, ".rights");
  }

  /**
   * After a failure, the next creation tests the engine's permissions again, because there may be fewer or more than
   * before.
   */
  async #forgetRights(): Promise<void> {
    await rm(this.#rightsMemory, { force: true });
  }
}

/** Waits for both, even after one fails: when a claim has failed, no request may still be running. */
async function both<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

/**
 * Creates a bridge for the cluster; the engine picks its addresses. Throws `capacity-lacking` if the engine has none
 * left. The name contains the creation's id, because Docker 20 can create two networks of the same name at the same
 * moment, and then starts no container in either.
 */
async function createNetwork(
  engine: Engine,
  { clusterId, creationId, labels }: CreationName & { readonly labels: LabelValues },
): Promise<void> {
  const words = [
    "network",
    "create",
    "--driver=bridge",
    ...labelArguments(labels),
    networkName({ clusterId, creationId }),
  ];
  await engine.change({ words });
}
