import { existsSync } from "node:fs";
import { platform } from "node:os";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { Clock, Runtime } from "../../../system/runtime.ts";
import type { CopyRequest, Creation, CreationFolder, CreationSummary } from "../../contract.ts";
import { deadlineFiles } from "../../shared/first-boot.ts";
import { describeCopy } from "../../shared/describe-copy.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { type ClusterFacts, ContainerMachines, type MachinesPlan } from "../container-machines.ts";
import { findReach, readEngineFacts } from "../engine/choose-engine.ts";
import type { EngineFacts, Reach } from "../engine/engine-kind.ts";
import type { Engine } from "../engine/engine.ts";
import { createNetworkApart } from "../launch/create-network.ts";
import { beginNode, identityArchive } from "../launch/launch.ts";
import { readCopiedFrom } from "../records/read-containers.ts";
import { assertIdCanBeClaimed } from "../records/records.ts";
import { type SavedNode, createdAt, findSavedNodes } from "../snapshots/read-snapshots.ts";
import { removeUnusedImages } from "../snapshots/remove-snapshots.ts";
import { createSavedNodes, nodeRights } from "../snapshots/saved-nodes.ts";
import { assertJoined, networkFiles } from "./join-network.ts";

const startsAtOnce = 6;

interface CopyPlan extends MachinesPlan {
  readonly request: CopyRequest;
  readonly nodes: SavedNodes;
  readonly engineFacts: EngineFacts;
  readonly reach: Reach;
}

/** A node of a snapshot that says which address the platform knows. */
interface CopiedNode extends SavedNode {
  readonly platformAddress: string;
}

type SavedNodes = readonly [CopiedNode, ...CopiedNode[]];

/**
 * A cluster whose nodes boot from another one's snapshot. The engine gives them other addresses than the source's. The addresses that the platform
 * knows are on a network of their own, see `join-network.sh`, so both clusters can run. See Creation.
 */
export class ContainerCopy extends ContainerMachines implements Creation {
  readonly summary: CreationSummary;
  readonly #plan: CopyPlan;
  /** The containers' ids, and what they were created from. */
  #created: ReadonlyMap<string, SavedNode> = new Map();

  constructor(plan: CopyPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.summary = describe(plan, runtime.clock);
  }

  /** Creates nothing. Throws `cluster-exists`, `snapshot-not-found` and `snapshot-unusable`. */
  static async plan(
    { engine, root, request }: Pick<CopyPlan, "engine" | "root" | "request">,
    runtime: Runtime,
    signal: AbortSignal,
  ): Promise<ContainerCopy> {
    const engineFacts = await readEngineFacts(engine, signal);
    const [nodes, reach, { hasLeftovers }] = await Promise.all([
      findNodes(engine, request, signal),
      findReach(engine, engineFacts, platform(), signal),
      assertIdCanBeClaimed(engine, { root, clusterId: request.clusterId, clock: runtime.clock }, signal),
    ]);
    return new ContainerCopy({ engine, root, request, nodes, engineFacts, reach, hasLeftovers }, runtime);
  }

  protected get facts(): ClusterFacts {
    const { request, nodes } = this.#plan;
    const { variant, distribution, webUi } = request.source;
    return { counts: nodes[0].counts, variant, distribution, webUi };
  }

  async claim({ creationId }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { engine, root, request, reach } = this.#plan;
    await this.assertLeftoversAreGone(signal);
    // Nobody may delete the snapshot until there are containers, which keep the images.
    await using _ = await lockMachines(request.source.directory, this.runtime, signal);
    const saved = await findNodes(engine, request, signal);
    const rights = await nodeRights(engine, { image: saved[0].image, root }, signal);
    using step = this.runtime.progress.start("Copy file systems");
    signal.throwIfAborted();
    const name = { clusterId: request.clusterId, creationId };
    this.begin(name);
    const labels = { ...this.labelsOf(name, reach), copiedFrom: this.#copiedFrom.join(" ") };
    const known = saved.map(({ platformAddress }) => platformAddress);
    await createNetworkApart(engine, { ...name, labels }, known, signal);
    const nodes = saved.map((node) => {
      const { platformAddress } = node;
      return { ...node, ...name, reach, labels: { ...labels, platformAddress } };
    });
    this.#created = await createSavedNodes(engine, { nodes, ...rights, addresses: "new" }, signal);
    step.done();
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    await this.startContainers(async (onStart) => {
      const begin = async ([id, node]: readonly [string, SavedNode]): Promise<void> => {
        const files = [...networkFiles(node.platformAddress ?? ""), ...deadlineFiles(this.begun.expiresAt)];
        const keys = { hostKey: this.hostKeys.of(node), publicKey };
        const identity = await identityArchive({ ...keys, files }, this.runtime.clock.now());
        await beginNode(this.#plan.engine, { id, identity, onStart }, signal);
      };
      await mapConcurrently([...this.#created], startsAtOnce, begin, signal);
    });
  }

  override get firstLogin() {
    return { ...super.firstLogin, finishBoot: assertJoined };
  }

  /** The source may have been destroyed since. */
  override async remove(signal: AbortSignal): Promise<string | undefined> {
    const left = await super.remove(signal);
    if (this.begun.name !== undefined) await removeUnusedImages(this.#plan.engine, this.#copiedFrom, signal);
    return left;
  }

  get #copiedFrom(): readonly string[] {
    const { request, nodes } = this.#plan;
    return [request.source.creationId, ...readCopiedFrom(nodes[0].labels)];
  }
}

/** Throws `snapshot-not-found`, and `snapshot-unusable` if something that the nodes need is missing. */
async function findNodes(engine: Engine, { source, snapshot }: CopyRequest, signal: AbortSignal): Promise<SavedNodes> {
  const nodes = await findSavedNodes(engine, { cluster: source, name: snapshot }, signal);
  const unusable = (why: string, hint: string): ClusterError =>
    new ClusterError("snapshot-unusable", `The snapshot "${snapshot}" of cluster "${source.id}" ${why}.`, {
      hint,
      facts: { cluster: source.id, snapshot },
    });
  const folders = nodes.flatMap(({ settings }) =>
    settings.volumes.map((volume) => volume.slice(0, volume.indexOf(":"))),
  );
  const missing = folders.find((folder) => !existsSync(folder));
  // The engine would create the folder as root.
  if (missing !== undefined)
    throw unusable(`needs ${outside(missing)}, which does not exist`, "Its nodes mount it: create it.");
  if (!nodes.every(hasPlatformAddress))
    throw unusable(
      "was made by an earlier version, which did not save the network",
      `Restore it in cluster "${source.id}", and save that cluster under another name.`,
    );
  return nodes as SavedNodes;
}

const hasPlatformAddress = (node: SavedNode): node is CopiedNode => node.platformAddress !== undefined;

function describe({ engine: { kind }, engineFacts, request, nodes, reach }: CopyPlan, clock: Clock): CreationSummary {
  const [{ counts, settings }] = nodes;
  const made = createdAt({ images: nodes });
  return describeCopy(
    request,
    {
      createdAt: made?.toISOString(),
      counts,
      engine: `${kind.title} ${engineFacts.version}`,
      lines: [
        ["Limits", `memory ${settings.memory ?? "none"}, CPUs ${settings.cpus ?? "none"}, each`],
        ["Network", "its own bridge, and on it the private addresses of the snapshot"],
        ["Reached at", reach === "direct" ? "the containers' own addresses" : "ports of 127.0.0.1"],
      ],
      facts: { engine: { name: kind.name, version: engineFacts.version }, reach, ...settings },
    },
    clock,
  );
}
