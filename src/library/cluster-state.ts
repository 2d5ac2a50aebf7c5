import { openMaskedConnections } from "../cluster/connections.ts";
import { removeCluster } from "../cluster/destroy-clusters.ts";
import { ClusterError } from "../errors.ts";
import { snapshotNameRule } from "../model/parse-values.ts";
import { readArguments, required, textBy } from "../model/read-arguments.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import type { Work } from "../system/runtime.ts";
import { type Cancellation, inLibraryWords, readCancellation } from "./call-options.ts";
import { ClusterNode } from "./cluster-node.ts";
import type { OpenCluster } from "./open-cluster.ts";
import { SharedConnections } from "./runtime.ts";

/** What a `Cluster` knows of its machines, and its connections to them, until it is destroyed. */
export class ClusterState {
  readonly connections: SharedConnections;
  #open: OpenCluster;
  #nodes: readonly ClusterNode[];
  #isDestroyed = false;

  constructor(open: OpenCluster) {
    const { runtime } = open;
    this.connections = new SharedConnections(() =>
      openMaskedConnections(this.open.record, runtime),
    );
    this.#open = open;
    this.#nodes = this.#nodesOf(open.record);
  }

  /** Throws `cluster-not-found` after the destruction: by then, another cluster may have the same id. */
  get open(): OpenCluster {
    if (!this.#isDestroyed) return this.#open;
    const { id } = this.#open.record;
    throw new ClusterError("cluster-not-found", `Cluster "${id}" has been destroyed.`);
  }

  /** Stays after the destruction. */
  get base(): OpenCluster["base"] {
    return this.#open.base;
  }

  get nodes(): readonly ClusterNode[] {
    return this.#nodes;
  }

  #nodesOf(record: ClusterRecord): readonly ClusterNode[] {
    const present = record.nodes.filter((node) => node.state !== "ended");
    return present.map((node) => new ClusterNode(node, record, this.connections));
  }

  update(record: ClusterRecord): void {
    this.#open = { ...this.open, record };
    this.#nodes = this.#nodesOf(record);
  }

  /** Does an operation of the library whose only options are those of cancellation. */
  async call<Result>(
    options: Cancellation,
    task: (work: Work, open: OpenCluster) => Promise<Result>,
  ): Promise<Result> {
    const signal = readCancellation(options);
    return await inLibraryWords(async () => task({ ...this.open.runtime, signal }, this.open));
  }

  /** Does nothing the second time. */
  async destroy(signal: AbortSignal): Promise<void> {
    if (this.#isDestroyed) return;
    const { backend, record, runtime } = this.open;
    await this.connections[Symbol.asyncDispose]();
    await inLibraryWords(async () => removeCluster(backend, record, runtime.environment, signal));
    this.#isDestroyed = true;
  }
}

/** TypeScript keeps the constructor private; JavaScript lets anyone call it. */
export function assertOpen(open: OpenCluster | undefined): void {
  if (open?.record !== undefined) return;
  throw new ClusterError("bad-usage", "A Cluster cannot be made with `new`.", {
    hint: "Call Cluster.create for a new cluster, Cluster.find for one that exists, or Cluster.import for an exported one.",
  });
}

export const checkedName = (name: string): string =>
  readArguments({ name }, { name: required(textBy(snapshotNameRule)) }).name;
