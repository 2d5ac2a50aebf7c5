import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { createSemaphore, type Semaphore } from "../system/semaphore.ts";
import type { InstallPlan } from "./install-plan.ts";
import { isFirstMaster, prepareArtifact, prepareBootstrap } from "./installer-bootstrap.ts";
import type { ArtifactOnNode } from "./installer-bootstrap.ts";
import type { Layout } from "./layout.ts";
import { layoutOf } from "./layouts/find-layout.ts";
import { copyFiles } from "./install/copy-files.ts";
import type { PhaseRuntime } from "./install/phase.ts";
import { runPhase } from "./install/phase.ts";
import { prepareNode } from "./install/prepare-node.ts";
import { enforceSelinux } from "./install/selinux.ts";
import { startInstall } from "./install/start-install.ts";

/** Installs the platform on a cluster whose machines are still being created. Disposing of it ends its work and waits until that has ended. */
export interface Installer extends AsyncDisposable {
  /** Starts to prepare this node and resolves when it is prepared. A second call for the same node doesn't prepare it again. */
  prepare(node: NodeRecord): Promise<void>;
  /**
   * Resolves when the installation is running on every node of the cluster; from there it continues by itself. Prepares nodes that are not prepared
   * yet.
   */
  start(cluster: ClusterRecord): Promise<void>;
}

/** Limit for scripts that run on several nodes concurrently. Scripts for a single node wait only for that node. */
const nodesAtOnce = 32;

export function createInstaller(plan: InstallPlan, runtime: PhaseRuntime, signal: AbortSignal): Installer {
  const ending = new AbortController();
  const installation: Installation = {
    plan,
    runtime,
    slots: createSemaphore(nodesAtOnce),
    signal: AbortSignal.any([signal, ending.signal]),
    nodes: new Map(),
    artifact: Promise.withResolvers<ArtifactOnNode>(),
    work: new Set(),
  };
  installation.artifact.promise.catch(() => {});
  const follow = async <Result>(work: Promise<Result>): Promise<Result> => {
    installation.work.add(work);
    work.catch((error: unknown) => ending.abort(error));
    return work;
  };
  return {
    prepare: async (node) => follow(prepared(installation, node)),
    start: async (cluster) => follow(started(installation, cluster)),
    [Symbol.asyncDispose]: async () => {
      ending.abort(new DOMException("The installer was stopped", "AbortError"));
      await Promise.allSettled(installation.work);
    },
  };
}

interface Installation {
  readonly plan: InstallPlan;
  readonly runtime: PhaseRuntime;
  readonly slots: Semaphore;
  readonly signal: AbortSignal;
  /** By node id; each promise resolves when the node is prepared. */
  readonly nodes: Map<string, Promise<void>>;
  readonly artifact: PromiseWithResolvers<ArtifactOnNode>;
  readonly work: Set<Promise<unknown>>;
}

async function prepared(installation: Installation, node: NodeRecord): Promise<void> {
  const known = installation.nodes.get(node.id);
  if (known !== undefined) return known;
  const layout = layoutOf(installation.plan.layoutHint);
  const preparation = prepareOnce(installation, node, layout);
  installation.nodes.set(node.id, preparation);
  preparation.catch(() => {});
  if (isFirstMaster(node)) {
    const { plan, runtime, signal } = installation;
    const artifact = prepareArtifact({ plan, runtime, node, prepared: preparation }, signal);
    artifact.then(installation.artifact.resolve, installation.artifact.reject);
    await artifact;
  }
  return preparation;
}

async function prepareOnce(installation: Installation, node: NodeRecord, layout: Layout): Promise<void> {
  const { plan, runtime, signal } = installation;
  await installation.slots.run(async () => runPhase(prepareNode(layout, plan), node, runtime, signal), signal);
  if (plan.selinuxEnforcing) await runPhase(enforceSelinux, node, runtime, signal);
  if (node.role === "master" && plan.copyToMaster.length > 0)
    await runPhase(copyFiles(plan.copyToMaster), node, runtime, signal);
}

async function started(installation: Installation, cluster: ClusterRecord): Promise<void> {
  const { plan, runtime, signal } = installation;
  const preparations = new Map(cluster.nodes.map((node) => [node.id, prepared(installation, node)]));
  for (const preparation of preparations.values()) {
    installation.work.add(preparation);
    preparation.catch(() => {});
  }
  const bootstrap = prepareBootstrap({ plan, runtime, cluster, artifact: installation.artifact.promise }, signal);
  await Promise.all(
    cluster.nodes.map(async (node) => {
      const [{ layout, url, preparedFor, release }] = await Promise.all([bootstrap, preparations.get(node.id)]);
      if (layout.name !== preparedFor.name) await prepareOnce(installation, node, layout);
      await installation.slots.run(
        async () => runPhase(startInstall(layout, { url, release }), node, runtime, signal),
        signal,
      );
    }),
  );
}
