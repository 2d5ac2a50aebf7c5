import { messageOf } from "../../errors.ts";
import type { Runtime } from "../../system/runtime.ts";
import { readClusterSecrets } from "../../platform/cluster-secrets.ts";
import { orAborted } from "../../system/or-aborted.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { Destination } from "../../ssh/connection/destination.ts";
import { openConnections } from "./cluster-connections.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";

export interface MaskedConnections extends ConnectionPool {
  /** Why the cluster's secrets could not be read; undefined if they are hidden, or if the cluster has none yet. */
  problem(): string | undefined;
}

/** How long a first master that answers may delay connections to other nodes. The pool gives up sooner on one that doesn't answer. */
const readLimitMs = 60_000;

/**
 * Opens connections to the nodes of a cluster that another process may have created. Before it connects to any node, it reads the cluster's secrets
 * from the first master, once, and hides them, so every command that shows or saves text from a node masks them. It never connects to the first
 * master without doing so. If the first master can't be reached, the other nodes wait for it only once; the secrets are read as soon as it can be
 * connected to.
 */
export function openMaskedConnections(
  cluster: ClusterRecord,
  runtime: Omit<Runtime, "environment">,
): MaskedConnections {
  const pool = openConnections(cluster.directory, runtime);
  const firstMaster = cluster.nodes.find((node) => node.role === "master" && node.index === 0);
  const ending = new AbortController();
  const state: { first?: Promise<void>; isKnown: boolean; problem?: string } = { isKnown: false };

  const read = async (master: Destination, signal: AbortSignal): Promise<void> => {
    const connection = await pool.connect(master, signal);
    const { values, areComplete } = await readClusterSecrets(connection, signal);
    for (const value of values) runtime.progress.hide(value);
    state.isKnown = areComplete;
    delete state.problem;
  };
  const readFirst = async (): Promise<void> => {
    if (firstMaster === undefined || firstMaster.state === "ended" || firstMaster.ssh.host === "") {
      state.problem = "the cluster has no first master";
      return;
    }
    try {
      await read(firstMaster, AbortSignal.any([ending.signal, AbortSignal.timeout(readLimitMs)]));
    } catch (error) {
      state.problem = messageOf(error);
      runtime.progress.detail(1, `Cannot read the cluster's secrets: ${state.problem}`);
    }
  };

  return {
    adopt: (node, connection) => pool.adopt(node, connection),
    connect: async (node, signal) => {
      const isFirst = state.first === undefined;
      state.first ??= readFirst();
      await orAborted(state.first, signal);
      const hasJustBeenRead = isFirst && state.problem === undefined;
      if (!state.isKnown && !hasJustBeenRead && node.id === firstMaster?.id) await read(node, signal);
      return pool.connect(node, signal);
    },
    problem: () => state.problem,
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await pool[Symbol.asyncDispose]();
    },
  };
}
