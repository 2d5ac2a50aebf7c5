import { ClusterError } from "../../../errors.ts";
import type { Work } from "../../../system/runtime.ts";
import type { CopyRequest } from "../../contract.ts";
import { type SnapshotOrigin, snapshotTitle } from "../../shared/describe-copy.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import type { ClusterFacts } from "../container-machines.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { type Engine, readEngineFacts } from "../engine/engine.ts";
import type { CreationName, NodeSettings } from "../records/labels.ts";
import { readCopiedFrom } from "../records/read-containers.ts";
import { type SavedNode, createdAt, findRestorableNodes } from "../snapshots/read-snapshots.ts";

/** A saved node whose platform address is known. */
export interface CopiedNode extends SavedNode {
  readonly platformAddress: string;
}

export type CopiedNodes = readonly [CopiedNode, ...CopiedNode[]];

/** The checked source of a copy's nodes: a snapshot on this computer, or a file. */
export interface CopyOrigin {
  readonly facts: ClusterFacts;
  readonly settings: NodeSettings;
  readonly engineFacts: EngineFacts;
  /** For the summary, in words and as data. */
  readonly title: string;
  readonly summary: SnapshotOrigin;
  /** Gets the saved nodes, and protects them until they are released. */
  open(creation: CreationName, signal: AbortSignal): Promise<OpenOrigin>;
}

export interface OpenOrigin {
  readonly nodes: CopiedNodes;
  /** The creations from whose snapshots the nodes are created. */
  readonly copiedFrom: readonly string[];
  /** `running`: the containers of all nodes run, so the engine keeps their images. */
  release(containers: "running" | "failed"): Promise<void>;
}

/** Throws `snapshot-not-found`, and `snapshot-unusable` if something that the nodes need is missing. */
export async function snapshotOrigin(
  work: Work,
  engine: Engine,
  request: CopyRequest,
): Promise<CopyOrigin> {
  const { source, snapshot } = request;
  const [nodes, engineFacts] = await Promise.all([
    findNodes(engine, request, work.signal),
    readEngineFacts(engine, work.signal),
  ]);
  const [{ counts, settings, labels }] = nodes;
  const { id: cluster, variant, distribution, webUi, platform } = source;
  const isOffline = labels.offline !== undefined;
  const summary = { cluster, snapshot, createdAt: createdAt({ images: nodes })?.toISOString() };
  return {
    facts: { counts, variant, distribution, webUi, platform, isOffline },
    settings,
    engineFacts,
    title: snapshotTitle(summary),
    summary,
    open: async (_, inner) => {
      // Nobody may delete the snapshot until containers run, which keep the images.
      const lock = await lockMachines({ ...work, signal: inner }, source.directory);
      try {
        const saved = await findNodes(engine, request, inner);
        const copiedFrom = [source.creationId, ...readCopiedFrom(saved[0].labels)];
        return { nodes: saved, copiedFrom, release: async () => lock[Symbol.asyncDispose]() };
      } catch (error) {
        await lock[Symbol.asyncDispose]();
        throw error;
      }
    },
  };
}

async function findNodes(
  engine: Engine,
  { source, snapshot }: CopyRequest,
  signal: AbortSignal,
): Promise<CopiedNodes> {
  const nodes = await findRestorableNodes(engine, { cluster: source, name: snapshot }, signal);
  if (haveAddresses(nodes)) return nodes;
  throw new ClusterError(
    "snapshot-unusable",
    `The snapshot "${snapshot}" of cluster "${source.id}" was made by an earlier version, which did not save the network.`,
    {
      hint: `Restore it in cluster "${source.id}", and save that cluster under another name.`,
      facts: { cluster: source.id, snapshot },
    },
  );
}

/** Whether the platform addresses of all nodes are known. */
export const haveAddresses = (nodes: readonly [SavedNode, ...SavedNode[]]): nodes is CopiedNodes =>
  nodes.every(({ platformAddress }) => platformAddress !== undefined);
