import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { version } from "../../version.ts";
import { countsText, nodeCount } from "../cluster-shape.ts";
import { hostKeyPerNode } from "../first-host-keys.ts";
import { launchAndRaise } from "../launch-and-raise.ts";
import { openIntroduction } from "../meet-node.ts";
import { removeAbandoned } from "../remove-abandoned.ts";
import type { LocalProvisioning } from "../local-backend.ts";
import { runCreation } from "../run-creation.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import type { ContainerOptions } from "./container-options.ts";
import { defaultDistribution } from "./containerfiles.ts";
import type { Engine } from "./engine.ts";
import { identityArchive } from "./identity.ts";
import { readInventory } from "./inventory.ts";
import { launchNodes, type LaunchPlan } from "./launch.ts";
import type { Making } from "./making.ts";
import { createNetwork } from "./network.ts";
import { obtainNodeImage } from "./node-image.ts";
import { rememberedRights } from "./remembered-rights.ts";
import { removeCreation } from "./remove-creation.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import { containerRollBack } from "./roll-back.ts";
import { systemFlags } from "./system-flags.ts";
import { watchMachines } from "./watch-machines.ts";

/** Between two looks at the containers. */
const longestPauseMs = 1_000;

export interface ContainerProvisioning extends LocalProvisioning<ContainerOptions, ResolvedCreation, Making> {
  readonly engine: Engine;
}

/** See Backend.provision. */
export async function provision(work: ContainerProvisioning, signal: AbortSignal): Promise<ClusterRecord> {
  return runCreation(
    {
      request: work.request,
      progress: work.surroundings.progress,
      prepare: async (inner) => prepare(work, inner),
      make: async (making, inner) => make(work, making, inner),
      rollBackOf: (making) => containerRollBack(work, making),
    },
    signal,
  );
}

async function prepare(work: ContainerProvisioning, signal: AbortSignal): Promise<Making> {
  const { engine, request, surroundings } = work;
  const { clusterId, creationId, directory } = request;
  await removeAbandoned(
    { root: work.root, clusterId },
    async ({ creation }) => removeCreation(engine, creation, surroundings.clock, signal),
    surroundings.progress,
  );
  const [resolved, inventory] = await Promise.all([
    work.resolve(signal),
    readInventory(engine, { clusterId }, work.root, signal),
  ]);
  assertIdIsFree(engine, inventory, { clusterId, leaving: [] });
  if (request.distribution === defaultDistribution && request.creation.nodeImage === undefined) {
    const { cgroupVersion } = resolved.facts;
    surroundings.progress.note(`Nodes run ${resolved.distribution}, the default under cgroups ${cgroupVersion}.`);
  }
  await obtainNodeImage(engine, resolved.image, surroundings.progress, signal);
  const labels = {
    clusterId,
    creationId,
    counts: countsText(request.counts),
    variant: request.variant,
    distribution: resolved.distribution,
    reach: resolved.reach,
    createdBy: version,
  };
  const making: Making = { clusterId, creationId, directory, resolved, labels, isTouched: false };
  work.onMaking(making);
  return making;
}

/** Nodes are met while later ones are still being made. */
async function make(work: ContainerProvisioning, making: Making, signal: AbortSignal): Promise<ClusterRecord> {
  const { engine, request, surroundings } = work;
  const { clusterId, creationId, directory, resolved } = making;
  const firstHostKeys = hostKeyPerNode();
  const { connections, deadlineMs } = request;
  const nothing = async (): Promise<undefined> => Promise.resolve(undefined);
  const meet = await openIntroduction(
    {
      directory,
      connections,
      firstHostKeys,
      deadlineMs,
      firstBoot: nothing,
      silence: nothing,
      onNode: work.onNode,
    },
    surroundings,
  );
  using step = surroundings.progress.start("Start containers");
  signal.throwIfAborted();
  making.isTouched = true;
  const { facts, image } = resolved;
  const memory = join(work.root, ".rights");
  const tried = rememberedRights(engine, { facts, image: image.name, memory }, signal);
  const [networkId, rights] = await both(createNetwork(engine, making), tried);
  const system = systemFlags(engine.kind, facts, rights);
  const { publicKey } = request;
  const identityOf: LaunchPlan["identityOf"] = async (node) =>
    identityArchive({ hostKey: firstHostKeys.of(node), publicKey }, surroundings.clock.now());
  const { counts, creation } = request;
  const plan = { clusterId, counts, creation, image: image.name, reach: resolved.reach };
  const launch = async (inner: AbortSignal): Promise<void> => {
    await launchNodes(engine, { ...plan, networkId, labels: making.labels, system, identityOf }, inner);
    step.done();
  };
  const look = watchMachines(engine, { creationId, root: work.root });
  const raising = { count: nodeCount(counts), longestPauseMs, look, meet };
  try {
    return await launchAndRaise(launch, raising, surroundings, signal);
  } catch (error) {
    // The next creation tries anew what the engine gives: it may be less than it was, or more.
    await rm(memory, { force: true });
    throw error;
  }
}

/** Both are awaited, also after one has failed: a roll-back must not begin while something is still being made. */
async function both<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}
