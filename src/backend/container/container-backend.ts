import { existsSync } from "node:fs";
import { platform } from "node:os";
import { dirname } from "node:path";
import { ClusterError, messageOf } from "../../errors.ts";
import type { ClusterName, ClusterRecord } from "../../model/cluster-record.ts";
import { isCreationHere } from "../../store/creation-folder.ts";
import { outsideLine } from "../../system/printable.ts";
import type { Runtime, Work } from "../../system/runtime.ts";
import type { Backend, CreationRequest, OtherScopes } from "../contract.ts";
import { foreignResourceText } from "../shared/foreign-resource.ts";
import { isOver, removeExpired } from "../shared/lifetimes.ts";
import { lockMachines } from "../shared/lock-machines.ts";
import { ipDetect } from "../shared/node-scripts.ts";
import { clusterConsoleOutput } from "./container-machines.ts";
import { containerPower } from "./container-power.ts";
import { ContainerCreation, resolveCreation } from "./container-creation.ts";
import { hostCgroupsAdvice } from "./distributions.ts";
import { chooseEngine, openOwn } from "./engine/choose-engine.ts";
import { isPresent } from "./engine/engine-errors.ts";
import { type EngineName, engineNames } from "./engine/engine-kind.ts";
import { type Engine, type EngineWork, readEngineFacts } from "./engine/engine.ts";
import { engineAddress, passageThrough } from "./engine/passage.ts";
import { stateFolder } from "../../store/state-folder.ts";
import type { ContainerOptions } from "./options.ts";
import { readEngineNote, whereMade } from "./records/engine-note.ts";
import type { Selection } from "./records/read-containers.ts";
import {
  assertIdCanBeClaimed,
  creationsRoot,
  readInventory,
  toClusters,
} from "./records/records.ts";
import { removeWithSnapshots } from "./remove-creation.ts";
import { containerSnapshots } from "./snapshots/container-snapshots.ts";
import { readSnapshots } from "./snapshots/read-snapshots.ts";

/** Opens clusters with the named engine, or else the first one found. Throws `machine-not-set-up` if there is none. */
export async function openContainerBackend(
  work: Work,
  { engine: named }: { readonly engine: EngineName | undefined },
) {
  // First of all: no engine helps a user whose clusters have no place, and what it says would mislead.
  stateFolder(work.environment);
  return createContainerBackend(await chooseEngine(work, named), work);
}

function createContainerBackend(engine: Engine, runtime: Runtime) {
  const root = creationsRoot(engine, runtime);
  /** Creations of which users know that their nodes are gone. */
  const noted = new Set<string>();
  const place = { root, passageTo: passageThrough(engine.kind, runtime.environment) };
  const read = sharedInventory(engine, root);
  const readClusters = async (
    selection: Selection,
    signal: AbortSignal,
  ): Promise<readonly ClusterRecord[]> => {
    const inventory = await read(selection, signal);
    for (const foreignResource of inventory.foreignResources)
      runtime.progress.detail(1, foreignResourceText(foreignResource));
    return toClusters(inventory, place);
  };
  const readPresent = async (
    selection: Selection,
    signal: AbortSignal,
  ): Promise<readonly ClusterRecord[]> =>
    (await readClusters(selection, signal)).filter((cluster) => !isOver(cluster, runtime.clock));
  const remove = async (cluster: ClusterName, signal: AbortSignal): Promise<void> =>
    removeCluster({ ...runtime, signal }, engine, cluster);
  return {
    name: "container" as const,
    // Engines know nothing about each other's containers, just as regions don't know each other's machines.
    scope: {
      kind: "engine",
      name: engine.kind.name,
      option: "engine",
      findElsewhere: async (clusterId, signal) =>
        findInOtherEngines({ ...runtime, signal }, engine, clusterId),
    },
    nodes: {
      ipDetect,
      ipDetectPublic: undefined,
      nodesKeepTime: false,
      cgroups1Advice: hostCgroupsAdvice,
    },
    plan: async (request, signal) =>
      planCreation({ ...runtime, signal }, engine, { root, request, read }),
    find: async (clusterId, signal) => {
      const cluster = await pickCluster(await readPresent({ clusterId }, signal));
      if (cluster?.nodes.length === 0) {
        if (!noted.has(cluster.creationId))
          await noteSnapshots({ ...runtime, signal }, engine, cluster);
        noted.add(cluster.creationId);
        await warnOfOtherStore({ ...runtime, signal }, engine, cluster);
      }
      return cluster;
    },
    list: async (signal) => readPresent("all", signal),
    remove,
    consoleOutput: async (cluster, signal) => clusterConsoleOutput(engine, cluster, signal),
    local: {
      snapshots: containerSnapshots(engine, root, runtime),
      power: containerPower(engine, root, runtime),
      removeExpired: async (signal) =>
        removeExpired({ ...runtime, signal }, await readClusters("all", signal), remove),
    },
  } satisfies Backend<ContainerOptions>;
}

/**
 * Returns a function that reads the engine's things. A creation looks for its id and for expired
 * clusters at the same time, with one signal, and gets one list of all.
 */
function sharedInventory(engine: Engine, root: string) {
  const asked = new WeakMap<AbortSignal, ReturnType<typeof readInventory>>();
  return async (selection: Selection, signal: AbortSignal): ReturnType<typeof readInventory> => {
    if (selection !== "all") return readInventory(engine, selection, root, signal);
    const known = asked.get(signal);
    if (known !== undefined) return known;
    const answer = readInventory(engine, "all", root, signal);
    asked.set(signal, answer);
    return answer.finally(() => asked.delete(signal));
  };
}

/**
 * Two creates at the same time can leave two clusters of one id, and anyone who may use the engine
 * can fake one. Returns the one whose key is on this machine, or else one with nodes.
 */
async function pickCluster(clusters: readonly ClusterRecord[]): Promise<ClusterRecord | undefined> {
  const here = await Promise.all(clusters.map(async ({ directory }) => isCreationHere(directory)));
  const candidates = [...clusters.filter((_, index) => here[index]), ...clusters];
  return candidates.find((cluster) => cluster.nodes.length > 0) ?? candidates[0];
}

/**
 * A Docker that was given another store of images still has its networks, but shows no container
 * that it made before.
 */
async function warnOfOtherStore(
  { progress, signal }: Work,
  engine: Engine,
  { id, directory }: Pick<ClusterRecord, "id" | "directory">,
): Promise<void> {
  const made = await readEngineNote(directory);
  if (made === undefined) return;
  const { storageDriver } = await readEngineFacts(engine, signal);
  if (storageDriver === made.storageDriver) return;
  const { title } = engine.kind;
  const [now, before] = [storageDriver, made.storageDriver].map((name) => outsideLine(name));
  progress.warn(
    `${title} has no node of cluster "${id}": it was made in the storage driver ${before}, and ${title} uses ${now} now. Configure ${before} again to use the cluster.`,
  );
}

/** A `system prune` or `container prune` removes the nodes of a stopped cluster, but not its snapshots. */
async function noteSnapshots(
  { progress, signal }: Work,
  engine: Engine,
  { id, creationId }: ClusterName,
): Promise<void> {
  const snapshots = await readSnapshots(engine, { creationId }, signal);
  const names = snapshots.flatMap(({ name, nodes }) => (nodes === undefined ? [] : [name]));
  if (names.length === 0) return;
  progress.note(
    `The nodes of cluster "${id}" were removed. Restore one of its snapshots: ${names.join(", ")}.`,
  );
}

async function removeCluster(
  work: Work,
  engine: Engine,
  { id: clusterId, creationId, directory }: ClusterName,
): Promise<void> {
  const { clock } = work;
  // Without that folder, nobody can be restoring the cluster on this machine.
  await using _ = existsSync(dirname(directory)) ? await lockMachines(work, directory) : undefined;
  const name = { clusterId, creationId };
  const left = await removeWithSnapshots(engine, name, clock, work.signal);
  if (left === undefined) return;
  throw new ClusterError("engine-failed", left, {
    hint: "Try again.",
    facts: { clusterId, creationId },
  });
}

async function planCreation(
  work: Work,
  engine: Engine,
  {
    root,
    request,
    read,
  }: {
    readonly root: string;
    readonly request: CreationRequest<ContainerOptions>;
    readonly read: ReturnType<typeof sharedInventory>;
  },
): Promise<ContainerCreation> {
  const [resolved, { hasLeftovers }] = await Promise.all([
    resolveCreation(engine, request, platform(), work.signal),
    assertIdCanBeClaimed(engine, {
      root,
      clusterId: request.clusterId,
      clock: work.clock,
      inventory: read("all", work.signal),
    }),
  ]);
  return new ContainerCreation({ engine, root, request, resolved, hasLeftovers }, work);
}

/** Finds other engines with a cluster of this id, and those that can't be asked. Fails only on an abort. */
export async function findInOtherEngines(
  work: EngineWork,
  { kind }: Pick<Engine, "kind">,
  clusterId: string,
): Promise<OtherScopes> {
  const others = engineNames.filter((name) => name !== kind.name);
  const root = creationsRoot({ kind }, work);
  const address = engineAddress(kind, work.environment);
  const notes = await whereMade(kind, { root, clusterId, address });
  const asked = await Promise.all(others.map(async (name) => ask(work, name, clusterId)));
  return {
    scopes: asked.flatMap(({ scopes }) => scopes),
    unreachable: asked.flatMap(({ unreachable }) => unreachable),
    ...(notes.length > 0 && { notes }),
  };
}

async function ask(work: EngineWork, name: EngineName, clusterId: string): Promise<OtherScopes> {
  try {
    const engine = await openOwn(work, name);
    if (engine === undefined) return { scopes: [], unreachable: [] };
    const root = creationsRoot(engine, work);
    const { networks } = await readInventory(engine, { clusterId }, root, work.signal);
    return { scopes: networks.length > 0 ? [name] : [], unreachable: [] };
  } catch (error) {
    work.signal.throwIfAborted();
    const reason = messageOf(error);
    return { scopes: [], unreachable: isPresent(error) ? [{ scope: name, reason }] : [] };
  }
}
