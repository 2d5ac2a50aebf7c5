import { join } from "node:path";
import { both } from "../../system/concurrency.ts";
import type { Runtime, Clock } from "../../system/runtime.ts";
import type {
  Creation,
  CreationFolder,
  CreationRequest,
  CreationSummary,
  NodeName,
} from "../contract.ts";
import { deadlineFiles } from "../shared/first-boot.ts";
import { type ClusterFacts, ContainerMachines, type MachinesPlan } from "./container-machines.ts";
import { defaultDistribution, chooseDistribution, hostCgroupsAdvice } from "./distributions.ts";
import { addressesIn } from "./launch/create-network.ts";
import {
  type CreatedNode,
  type LaunchPlan,
  createFirstNode,
  hostsFiles,
  identityArchive,
  launchNodes,
  nodesOf,
} from "./launch/launch.ts";
import { obtainNodeImage, type NodeImage, findNodeImage } from "./launch/node-image.ts";
import { rememberedRights, systemFlags } from "./launch/system-flags.ts";
import { limitsText } from "./limits.ts";
import { assertVolumesExist, warnOfMissingSources } from "./launch/find-missing-sources.ts";
import type { ContainerOptions } from "./options.ts";
import { networkName } from "./records/labels.ts";
import { nodesText } from "../../system/amounts.ts";
import { type Counts, nodeCount, nodeReference } from "../../model/cluster-record.ts";
import { wayOutText } from "../shared/describe-copy.ts";
import { endFacts, endLine } from "../shared/lifetimes.ts";
import { assertCgroups1 } from "../shared/machine-errors.ts";
import { assertLimitsWork } from "./engine/assert-usable.ts";
import { readDefaultNetwork } from "./engine/default-network.ts";
import { findReach, labelledReach, reachText, type Way } from "./engine/find-reach.ts";
import type { DescribedNetwork, EngineFacts, EngineKind, Reach } from "./engine/engine-kind.ts";
import { type Engine, readEngineFacts } from "./engine/engine.ts";

export interface ContainerPlan extends MachinesPlan {
  readonly request: CreationRequest<ContainerOptions>;
  readonly resolved: ResolvedCreation;
}

export class ContainerCreation extends ContainerMachines implements Creation {
  readonly summary: CreationSummary;
  readonly #plan: ContainerPlan;
  /** Set once the id is ours. */
  readonly #claimed: { launch?: LaunchPlan; first?: CreatedNode } = {};

  constructor(plan: ContainerPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.summary = describePlan(plan.request, plan.resolved, runtime.clock);
  }

  protected get facts(): ClusterFacts {
    const { request, resolved } = this.#plan;
    const { counts, variant, webUi, platform, options } = request;
    return {
      counts,
      variant,
      webUi,
      platform,
      distribution: resolved.distribution,
      isOffline: options.offline,
    };
  }

  protected get reach(): Reach {
    return labelledReach(this.#plan.resolved);
  }

  protected get engineFacts(): EngineFacts {
    return this.#plan.resolved.facts;
  }

  async claim(folder: CreationFolder, signal: AbortSignal): Promise<void> {
    const { engine, request, resolved, root } = this.#plan;
    const { clusterId, counts, options } = request;
    await this.assertLeftoversAreGone(signal);
    this.#noteDefaultDistribution();
    const { progress } = this.runtime;
    if (!resolved.image.isPresent && this.reach === "direct")
      warnOfMissingSources(options.customVolumes, engine.kind, progress);
    await obtainNodeImage(
      engine,
      resolved.image,
      { progress, logFile: join(root, "node-image.log") },
      signal,
    );
    const look = { image: resolved.image.name, customVolumes: options.customVolumes };
    if (!resolved.image.isPresent) await assertVolumesExist(engine, look, signal);
    using step = this.runtime.progress.start("Reserve the cluster id");
    signal.throwIfAborted();
    const name = await this.begin(folder);
    const labels = this.labelsOf(name, this.reach);
    const { facts, image, usual, reach: way } = resolved;
    const known = { facts, image: image.name, memory: this.rightsMemory, usual };
    const [range, rights] = await both(
      this.createNetwork({ ...name, labels }, { way, usual }, signal),
      rememberedRights(engine, known),
    );
    const plan = {
      clusterId,
      counts,
      options,
      image: image.name,
      network: networkName(name),
      addressOf: placesIn(range, counts),
      labels: { ...labels, range },
      system: systemFlags(engine.kind, facts, rights),
    };
    signal.throwIfAborted();
    this.#claimed.first = await createFirstNode(engine, plan);
    this.#claimed.launch = plan;
    step.done();
  }

  #noteDefaultDistribution(): void {
    const { request, resolved } = this.#plan;
    if (request.distribution !== defaultDistribution || request.options.nodeImage !== undefined)
      return;
    const { cgroupVersion } = resolved.facts;
    const reason =
      request.folderDistribution === undefined ? `under cgroups ${cgroupVersion}` : "for a folder";
    this.runtime.progress.note(`Nodes run ${resolved.distribution}, the default ${reason}.`);
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { first, launch: plan } = this.#claimed;
    if (first === undefined || plan === undefined)
      throw new TypeError("launch() was called before claim()");
    const { expiresAt } = this.begun;
    const hosts = hostsFiles(
      nodesOf(plan.counts).map((node) => ({ ...node, address: plan.addressOf(node) })),
    );
    const files = [...hosts, ...(expiresAt === undefined ? [] : deadlineFiles(expiresAt))];
    const identityOf = async (node: NodeName): Promise<Uint8Array> =>
      identityArchive(
        { hostKey: this.hostKeys.of(node), publicKey, files },
        this.runtime.clock.now(),
      );
    await this.startContainers(async (onStart) =>
      launchNodes(this.#plan.engine, { plan, first, identityOf, onStart }, signal),
    );
  }
}

/** Returns the address of each node, in the nodes' order. */
function placesIn(range: string, counts: Counts): (node: NodeName) => string {
  const [, ...addresses] = addressesIn(range, nodeCount(counts));
  const places = new Map(
    nodesOf(counts).map((node, place) => [nodeReference(node), addresses[place] ?? ""]),
  );
  return (node) => places.get(nodeReference(node)) ?? "";
}

export interface ResolvedCreation extends Way {
  readonly kind: EngineKind;
  readonly facts: EngineFacts;
  /** The distribution in the cluster's record; for a user's own image, the image's name. */
  readonly distribution: string;
  readonly image: NodeImage;
  /** The engine's own network. */
  readonly usual: DescribedNetwork;
}

type Resolving = Pick<
  CreationRequest<ContainerOptions>,
  "distribution" | "options" | "needsCgroups1" | "folderDistribution" | "imagePreparation"
>;

/**
 * Creates nothing. Throws `machine-not-set-up` if this engine isn't usable, and `bad-usage` if a
 * volume doesn't exist, as far as there is an image with which the engine can look.
 */
export async function resolveCreation(
  engine: Engine,
  { distribution: asked, options, needsCgroups1, folderDistribution, imagePreparation }: Resolving,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  const [facts, usual] = await Promise.all([
    readEngineFacts(engine, signal),
    readDefaultNetwork(engine, signal),
  ]);
  assertCgroups1(needsCgroups1, {
    name: "this computer, whose cgroups the containers share,",
    cgroupVersion: facts.cgroupVersion === "2" ? 2 : 1,
    advice: hostCgroupsAdvice,
  });
  assertLimitsWork(engine.kind, facts, options.limits);
  const { nodeImage } = options;
  const distribution =
    nodeImage === undefined
      ? chooseDistribution(asked, facts.cgroupVersion, folderDistribution)
      : `image ${nodeImage}`;
  const [way, image] = await Promise.all([
    findReach(engine, facts, platform, signal),
    findNodeImage(engine, distribution, { options, imagePreparation }, signal),
  ]);
  const look = { image: image.name, customVolumes: options.customVolumes };
  if (image.isPresent) await assertVolumesExist(engine, look, signal);
  return { kind: engine.kind, facts, usual, ...way, distribution, image };
}

export function describePlan(
  { clusterId, counts, options, lifetimeMs }: CreationRequest<ContainerOptions>,
  { kind, facts, distribution, image, reach, why }: ResolvedCreation,
  clock: Clock,
) {
  const source =
    image.containerfile === undefined ? "will be pulled" : "will be built, which takes minutes";
  return {
    counts,
    lines: [
      ["Cluster", clusterId],
      ["Engine", `${kind.title} ${facts.version}, cgroups ${facts.cgroupVersion}`],
      ["Distribution", distribution],
      ["Image", `${image.name} (${image.isPresent ? "present" : source})`],
      ["Containers", `${nodeCount(counts)}: ${nodesText(counts)}`],
      ["Per container", limitsText(options.limits, { after: ": ", none: "no limit" })],
      ["Network", `its own bridge${wayOutText(options.offline)}`],
      ["Reached", `${reachText(reach, kind)}: ${why}`],
      ["Volumes", options.customVolumes.length === 0 ? "none" : options.customVolumes.join(", ")],
      endLine(lifetimeMs, clock),
    ],
    facts: {
      cluster: clusterId,
      engine: { name: kind.name, version: facts.version, cgroupVersion: facts.cgroupVersion },
      distribution,
      image: { name: image.name, isPresent: image.isPresent },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      reach,
      volumes: options.customVolumes,
      ...options.limits,
      ...(options.offline && { offline: true }),
      ...endFacts(lifetimeMs, clock),
    },
  } satisfies CreationSummary;
}
