import { type ClusterError, messageOf } from "../../errors.ts";
import type { Runtime } from "../../system/runtime.ts";
import { readClusterSecrets, TooManySecrets } from "../../platform/cluster-secrets.ts";
import { orAborted } from "../../system/or-aborted.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import type { Destination } from "../../ssh/connection/destination.ts";
import { openConnections } from "./cluster-connections.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";

export interface MaskedConnections extends ConnectionPool {
  /** Why the cluster's secrets could not be read; undefined if they are hidden, or if the cluster has none yet. */
  problem(): string | undefined;
  /** Why no text from the cluster may be shown or saved; undefined if it may. */
  refusal(): ClusterError | undefined;
}

/** How long a first master that answers may delay connections to other nodes. The pool gives up sooner on one that doesn't answer. */
const readLimitMs = 60_000;

/**
 * Opens connections to the nodes of a cluster that another process may have created. They deliver and show nothing that a node says before the
 * cluster's secrets have been read from the first master and hidden, so every command that shows or saves text from a node masks them. A command
 * whose output is hidden runs meanwhile. If the first master can't be reached, the other nodes wait for it only once; the secrets are read as soon
 * as it can be connected to. If it names too many, no text of any node is delivered, so that a flood can't uncover what it hides.
 */
export function openMaskedConnections(
  cluster: ClusterRecord,
  runtime: Omit<Runtime, "environment">,
): MaskedConnections {
  const pool = openConnections(cluster.directory, runtime);
  const firstMaster = cluster.nodes.find((node) => node.role === "master" && node.index === 0);
  const state: { first?: Promise<void>; isKnown: boolean; problem?: string; refusal?: TooManySecrets } = {
    isKnown: false,
  };

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
      await read(firstMaster, AbortSignal.timeout(readLimitMs));
    } catch (error) {
      if (error instanceof TooManySecrets) state.refusal = error;
      state.problem = messageOf(error);
      runtime.progress.detail(1, `Cannot read the cluster's secrets: ${state.problem}`);
    }
  };

  /** Resolves once text from this node may be shown. */
  const untilMasked = async (node: Destination, signal: AbortSignal): Promise<void> => {
    const isFirst = state.first === undefined;
    state.first ??= readFirst();
    await orAborted(state.first, signal);
    if (state.refusal !== undefined) throw state.refusal;
    const hasJustBeenRead = isFirst && state.problem === undefined;
    if (!state.isKnown && !hasJustBeenRead && node.id === firstMaster?.id) await read(node, signal);
  };

  return {
    adopt: (node, connection) => pool.adopt(node, connection),
    connect: async (node, signal) => {
      const masked = untilMasked(node, signal);
      masked.catch(() => {});
      try {
        return withheld(await pool.connect(node, signal), masked);
      } catch (error) {
        await masked.catch(() => {});
        throw error;
      }
    },
    problem: () => state.problem,
    refusal: () => state.refusal,
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

/** Like `connection`, but delivers and shows no text from the node before `masked` resolves. */
function withheld(connection: Connection, masked: Promise<void>): Connection {
  return {
    get isOpen() {
      return connection.isOpen;
    },
    run: async (command, signal) => {
      const isSilent =
        command.isOutputHidden === true && command.onOutput === undefined && command.receive === undefined;
      if (!isSilent) await orAborted(masked, signal);
      const [masking, result] = await Promise.allSettled([orAborted(masked, signal), connection.run(command, signal)]);
      if (masking.status === "rejected") throw masking.reason;
      if (result.status === "rejected") throw result.reason;
      return result.value;
    },
    upload: async (source, target, signal) => {
      await orAborted(masked, signal);
      await connection.upload(source, target, signal);
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
