import { join } from "node:path";
import type { ClusterRecord } from "../../cluster/record.ts";
import { roles } from "../../cluster/record.ts";
import { generateKeyPair } from "../../ssh/keys.ts";
import { version } from "../../version.ts";
import { countsText } from "../cluster-shape.ts";
import { openIntroduction } from "../meet-node.ts";
import { raiseNodes } from "../raise-nodes.ts";
import { removeAbandoned } from "../remove-abandoned.ts";
import { type Provisioning, runCreation } from "../run-creation.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import type { ContainerCreation } from "./container-creation.ts";
import { describeContainers, describeNetworks } from "./describe.ts";
import type { Engine } from "./engine.ts";
import { identityArchive } from "./identity.ts";
import { launchNodes } from "./launch.ts";
import type { Making } from "./making.ts";
import { createNetwork } from "./network.ts";
import { obtainNodeImage } from "./node-image.ts";
import { removeCreation } from "./remove-creation.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import { containerRollBack } from "./roll-back.ts";
import { canBePrivileged, type SystemFlags, systemFlags } from "./system-flags.ts";
import { watchMachines } from "./watch-machines.ts";

/** Between two looks at the containers. */
const longestPauseMs = 1_000;

export interface ContainerProvisioning extends Provisioning<ContainerCreation, ResolvedCreation, Making> {
  readonly engine: Engine;
  /** The folder of this machine's creations. */
  readonly root: string;
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
  const [resolved, containers, networks] = await Promise.all([
    work.resolve(signal),
    describeContainers(engine, { clusterId }, signal),
    describeNetworks(engine, { clusterId }, signal),
  ]);
  assertIdIsFree({ containers, networks }, clusterId, []);
  await obtainNodeImage(engine, resolved.image, surroundings.progress, signal);
  const labels = {
    clusterId,
    creationId,
    counts: countsText(request.counts),
    variant: request.variant,
    distribution:
      request.creation.nodeImage === undefined ? request.distribution : `image ${request.creation.nodeImage}`,
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
  const hostKey = generateKeyPair("first-contact");
  const { connections, deadlineMs } = request;
  const nothing = async (): Promise<undefined> => Promise.resolve(undefined);
  const meet = await openIntroduction(
    {
      directory,
      connections,
      firstHostKey: hostKey.publicKey,
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
  const [networkId, system] = await both(createNetwork(engine, making), systemFor(work, resolved, signal));
  const identity = await identityArchive({ hostKey, publicKey: request.publicKey }, surroundings.clock.now());
  const { counts, creation } = request;
  const plan = { clusterId, counts, creation, image: resolved.image.name, reach: resolved.reach };
  const failing = new AbortController();
  const either = AbortSignal.any([signal, failing.signal]);
  const launched = launchNodes(engine, { ...plan, networkId, labels: making.labels, system, identity }, either);
  launched.then(
    () => step.done(),
    (error: unknown) => failing.abort(error),
  );
  const count = roles.reduce((sum, role) => sum + counts[role], 0);
  const look = watchMachines(engine, { creationId, root: work.root });
  const raised = raiseNodes({ count, longestPauseMs, look, meet }, surroundings, either);
  raised.catch((error: unknown) => failing.abort(error));
  const [cluster] = await both(raised, launched);
  return cluster;
}

/** Both are awaited, also after one has failed: a roll-back must not begin while something is still being made. */
async function both<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

async function systemFor(
  { engine, root }: ContainerProvisioning,
  { facts, image }: ResolvedCreation,
  signal: AbortSignal,
): Promise<SystemFlags> {
  const memory = join(root, ".privileged");
  return systemFlags(facts, await canBePrivileged(engine, { image: image.name, memory }, signal));
}
