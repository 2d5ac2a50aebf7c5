import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { version } from "../../version.ts";
import type { Creation, CreationFolder, CreationRequest, CreationSummary, NodeName } from "../../model/creation.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { countsText } from "../../model/cluster-shape.ts";
import { hostKeyPerNode } from "../first-host-keys.ts";
import { machineFailed } from "../machine-failed.ts";
import { consoleOutput } from "./console-output.ts";
import { defaultDistribution } from "./launch/containerfiles.ts";
import type { ContainerOptions } from "./container-options.ts";
import { describeContainers } from "./records/describe.ts";
import { describePlan } from "./launch/describe-plan.ts";
import { destroyCommand, type Engine } from "./engine/engine.ts";
import { identityArchive } from "./launch/identity.ts";
import { assertIdIsFree, readInventory } from "./records/inventory.ts";
import { createFirstNode, type CreatedNode, launchNodes, type LaunchPlan } from "./launch/launch.ts";
import { type CreationName, networkName } from "./records/names.ts";
import { createNetwork } from "./launch/network.ts";
import { obtainNodeImage } from "./launch/node-image.ts";
import { readNodes } from "./records/read-containers.ts";
import { toClusters } from "./records/records.ts";
import { rememberedRights } from "./launch/remembered-rights.ts";
import { removeCreation, stopCreation } from "./remove-creation.ts";
import type { ResolvedCreation } from "./launch/resolve-creation.ts";
import { systemFlags } from "./launch/system-flags.ts";

export interface ContainerPlan {
  readonly engine: Engine;
  /** The folder of this machine's creations with the engine. */
  readonly root: string;
  readonly request: CreationRequest<ContainerOptions>;
  readonly resolved: ResolvedCreation;
}

/** See Creation. */
export class ContainerCreation implements Creation {
  readonly summary: CreationSummary;
  readonly lookEveryMs = 1_000;
  readonly loginLimitMs = 10 * 60_000;
  readonly #plan: ContainerPlan;
  readonly #surroundings: Surroundings;
  readonly #hostKeys = hostKeyPerNode();
  /** `name`: set once something was requested. `first`, `launch`: set once the id is ours. */
  readonly #made: { name?: CreationName; launch?: LaunchPlan; first?: CreatedNode } = {};

  constructor(plan: ContainerPlan, surroundings: Surroundings) {
    this.#plan = plan;
    this.#surroundings = surroundings;
    this.summary = describePlan(plan.request, plan.resolved);
  }

  async claim({ creationId }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { engine, request, resolved, root } = this.#plan;
    const { clusterId, counts, options, variant } = request;
    assertIdIsFree(engine, await readInventory(engine, { clusterId }, root, signal), { clusterId, leaving: [] });
    this.#tellDefaultDistribution();
    await obtainNodeImage(engine, resolved.image, this.#surroundings.progress, signal);
    const labels = {
      clusterId,
      creationId,
      counts: countsText(counts),
      variant,
      distribution: resolved.distribution,
      reach: resolved.reach,
      createdBy: version,
    };
    using step = this.#surroundings.progress.start("Reserve the cluster id");
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

  #tellDefaultDistribution(): void {
    const { request, resolved } = this.#plan;
    if (request.distribution !== defaultDistribution || request.options.nodeImage !== undefined) return;
    const { cgroupVersion } = resolved.facts;
    this.#surroundings.progress.note(`Nodes run ${resolved.distribution}, the default under cgroups ${cgroupVersion}.`);
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { first, launch: plan } = this.#made;
    if (first === undefined || plan === undefined) throw new TypeError("A launch comes after the claim");
    using step = this.#surroundings.progress.start("Start containers");
    const { clock } = this.#surroundings;
    const identityOf = async (node: NodeName): Promise<Uint8Array> =>
      identityArchive({ hostKey: this.#hostKeys.of(node), publicKey }, clock.now());
    try {
      await launchNodes(this.#plan.engine, { plan, first, identityOf }, signal);
    } catch (error) {
      await this.#forgetRights();
      throw error;
    }
    step.done();
  }

  async look(signal: AbortSignal): Promise<ClusterRecord> {
    const cluster = await this.describe(signal);
    const ended = cluster.nodes.find((node) => node.state === "ending" || node.state === "ended");
    if (ended === undefined) return cluster;
    await this.#forgetRights();
    const said = await consoleOutput(this.#plan.engine, ended, signal).catch(() => "");
    const hint =
      "The node image must start systemd as /sbin/init, with sshd; the doctor command tells what the machine lacks.";
    throw machineFailed(ended, { said, hint });
  }

  async describe(signal: AbortSignal): Promise<ClusterRecord> {
    const { engine, request, resolved, root } = this.#plan;
    const { clusterId, counts, variant } = request;
    const creationId = this.#made.name?.creationId ?? "";
    const network = { clusterId, creationId, counts, variant, distribution: resolved.distribution };
    const containers = readNodes(await describeContainers(engine, { creationId }, signal), [network]).read;
    const [cluster] = toClusters({ containers, networks: [network], abandoned: new Set() }, root);
    if (cluster === undefined) throw new TypeError("A network makes no cluster");
    return cluster;
  }

  firstHostKeyOf(node: NodeName): string {
    return this.#hostKeys.of(node).publicKey;
  }

  /** A container is ready as soon as it accepts a login. */
  async finishBoot(): Promise<void> {}

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
    return await removeCreation(this.#plan.engine, name, this.#surroundings.clock, signal);
  }

  describeKept(): string {
    return `its containers. Remove them with: ${this.#removal}`;
  }

  describeRemains(): string | undefined {
    if (this.#made.name === undefined) return undefined;
    return `Containers and a network may be left. Remove them: ${this.#removal}`;
  }

  get #removal(): string {
    return destroyCommand(this.#plan.engine, this.#plan.request.clusterId);
  }

  get #rightsMemory(): string {
    return join(this.#plan.root, ".rights");
  }

  /** After a failure, the next creation tests the engine's permissions again, because there may be fewer or more than before. */
  async #forgetRights(): Promise<void> {
    await rm(this.#rightsMemory, { force: true });
  }
}

/** Waits for both, even after one fails: nothing may still be under way when a claim has failed. */
async function both<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}
