import { join } from "node:path";
import type { Runtime } from "../../system/runtime.ts";
import type { Creation, CreationFolder, CreationRequest, CreationSummary, NodeName } from "../contract.ts";
import { deadlineFiles } from "../shared/deadline.ts";
import { type ClusterFacts, ContainerMachines, type MachinesPlan } from "./container-machines.ts";
import { defaultDistribution } from "./distributions.ts";
import { createNetwork } from "./launch/create-network.ts";
import { type CreatedNode, type LaunchPlan, createFirstNode, identityArchive, launchNodes } from "./launch/launch.ts";
import { obtainNodeImage } from "./launch/node-image.ts";
import { rememberedRights, systemFlags } from "./launch/system-flags.ts";
import type { ContainerOptions } from "./options.ts";
import { type ResolvedCreation, describePlan } from "./plan.ts";
import { networkName } from "./records/labels.ts";

export interface ContainerPlan extends MachinesPlan {
  readonly request: CreationRequest<ContainerOptions>;
  readonly resolved: ResolvedCreation;
}

/** See Creation. */
export class ContainerCreation extends ContainerMachines implements Creation {
  readonly summary: CreationSummary;
  readonly #plan: ContainerPlan;
  /** Set once the id is ours. */
  readonly #made: { launch?: LaunchPlan; first?: CreatedNode } = {};

  constructor(plan: ContainerPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.summary = describePlan(plan.request, plan.resolved, runtime.clock);
  }

  protected get facts(): ClusterFacts {
    const { request, resolved } = this.#plan;
    const { counts, variant, webUi } = request;
    return { counts, variant, webUi, distribution: resolved.distribution };
  }

  async claim({ creationId }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { engine, request, resolved, root } = this.#plan;
    const { clusterId, counts, options } = request;
    await this.assertLeftoversAreGone(signal);
    this.#noteDefaultDistribution();
    const { progress } = this.runtime;
    await obtainNodeImage(engine, resolved.image, { progress, logFile: join(root, "node-image.log") }, signal);
    using step = this.runtime.progress.start("Reserve the cluster id");
    signal.throwIfAborted();
    const name = { clusterId, creationId };
    this.begin(name);
    const labels = this.labelsOf(name, resolved.reach);
    const { facts, image } = resolved;
    const tried = rememberedRights(engine, { facts, image: image.name, memory: this.rightsMemory }, signal);
    const [, rights] = await both(createNetwork(engine, { ...name, labels }), tried);
    const system = systemFlags(engine.kind, facts, rights);
    const network = networkName(name);
    const plan = { clusterId, counts, options, image: image.name, reach: resolved.reach, network, labels, system };
    signal.throwIfAborted();
    this.#made.first = await createFirstNode(engine, plan);
    this.#made.launch = plan;
    step.done();
  }

  #noteDefaultDistribution(): void {
    const { request, resolved } = this.#plan;
    if (request.distribution !== defaultDistribution || request.options.nodeImage !== undefined) return;
    const { cgroupVersion } = resolved.facts;
    const reason = request.needsApt ? "for a platform with packages for apt" : `under cgroups ${cgroupVersion}`;
    this.runtime.progress.note(`Nodes run ${resolved.distribution}, the default ${reason}.`);
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { first, launch: plan } = this.#made;
    if (first === undefined || plan === undefined) throw new TypeError("launch() was called before claim()");
    const { expiresAt } = this.begun;
    const files = expiresAt === undefined ? [] : deadlineFiles(expiresAt);
    const identityOf = async (node: NodeName): Promise<Uint8Array> =>
      identityArchive({ hostKey: this.hostKeys.of(node), publicKey, files }, this.runtime.clock.now());
    await this.startContainers(async (onStart) =>
      launchNodes(this.#plan.engine, { plan, first, identityOf, onStart }, signal),
    );
  }
}

/** Waits for both, even after one fails: when a claim has failed, no request may still be running. */
async function both<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}
