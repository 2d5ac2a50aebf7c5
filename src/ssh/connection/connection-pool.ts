import { ClusterError } from "../../errors.ts";
import { numbered } from "../../system/amounts.ts";
import { createSemaphore } from "../../system/concurrency.ts";
import { readOwnText, unreadableReason } from "../../system/files/read-text.ts";
import { retry } from "../../system/retry.ts";
import type { Runtime } from "../../system/runtime.ts";
import { orAborted, slowNote } from "../../system/time-limit.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { parseKey } from "../keys.ts";
import type { KnownHosts } from "../openssh-files.ts";
import { TurnedAway } from "./connection-errors.ts";
import { type Connection, type Destination, targetOf } from "./connection.ts";
import { openConnection } from "./open-connection.ts";

/** The open connections of one cluster, one per node: opened when first needed, and reopened after a loss. */
export interface ConnectionPool extends AsyncDisposable {
  /**
   * Returns the node's shared connection. Throws `connection-failed` (transient),
   * `host-key-changed` or `key-missing`.
   */
  connect(node: Destination, signal: AbortSignal): Promise<Connection>;
  /** Takes over a connection that was opened for first contact. */
  adopt(node: Destination, connection: Connection): void;
}

interface PoolOptions extends Pick<Runtime, "clock" | "progress"> {
  /** The cluster's login key. Connecting throws `key-missing` if there is no such file. */
  readonly privateKeyFile: string;
  readonly knownHosts: KnownHosts;
}

const handshakesAtOnce = 64;

export function createConnectionPool(options: PoolOptions): ConnectionPool {
  const slots = createSemaphore(handshakesAtOnce);
  const disposal = new AbortController();
  const open = new Map<string, Connection>();
  const opening = new Map<string, Promise<Connection>>();
  const slow = { isNoted: false };

  const openNow = async (node: Destination): Promise<Connection> => {
    try {
      const connection = await slots.run(
        () => login(node, options, disposal.signal),
        disposal.signal,
      );
      open.set(keyOf(node), connection);
      return connection;
    } finally {
      opening.delete(keyOf(node));
    }
  };
  const openOnce = (node: Destination): Promise<Connection> => {
    const present = opening.get(keyOf(node));
    if (present !== undefined) return present;
    const begun = openNow(node);
    opening.set(keyOf(node), begun);
    return begun;
  };

  /** One line, no matter how many nodes are silent, and how often they are tried. */
  const noteSlow = (node: Destination): void => {
    if (slow.isNoted) return;
    slow.isNoted = true;
    options.progress.note(
      waitingFor(opening.size === 1 ? targetOf(node).name : numbered(opening.size, "node")),
    );
  };

  return {
    connect: async (node, signal) => {
      signal.throwIfAborted();
      disposal.signal.throwIfAborted();
      const present = open.get(keyOf(node));
      if (present?.isOpen === true) return present;
      using _slow = slowNote(() => {
        if (!signal.aborted) noteSlow(node);
      });
      // After an abort the opening continues for the other callers that share it.
      return await orAborted(openOnce(node), signal);
    },
    adopt: (node, connection) => {
      open.set(keyOf(node), connection);
    },
    [Symbol.asyncDispose]: async () => {
      disposal.abort(
        new ClusterError("connection-failed", "The cluster's connections are closed."),
      );
      await Promise.allSettled(opening.values());
      await Promise.all([...open.values()].map((connection) => connection[Symbol.asyncDispose]()));
    },
  };
}

/** What users read while an SSH server is silent. */
export const waitingFor = (nodes: string): string => `Waiting for ${nodes} to answer over SSH.`;

/** A machine that returns with another address is another destination. */
const keyOf = ({ id, ssh }: Destination): string => `${id} ${ssh.user}@${ssh.host} ${ssh.port}`;

async function login(
  node: Destination,
  options: PoolOptions,
  signal: AbortSignal,
): Promise<Connection> {
  const target = targetOf(node);
  const privateKey = await readPrivateKey(options.privateKeyFile);
  const hostKey = await options.knownHosts.expected(target.host, target.port);
  if (hostKey === undefined) throw hostKeyUnknown(target.name, options.knownHosts.path);
  const { clock, progress } = options;
  const openIt = (attemptSignal: AbortSignal): Promise<Connection> =>
    openConnection({ ...target, privateKey, hostKeys: [hostKey], clock, progress }, attemptSignal);
  return await retry(
    async (inner) => retry(openIt, ruleOf(waits.connection, clock), inner),
    { ...ruleOf(waits.turnedAway, clock), tolerates: ({ cause }) => cause instanceof TurnedAway },
    signal,
  );
}

async function readPrivateKey(path: string): Promise<string> {
  const key = await readOwnText(path).catch((error: unknown) => {
    throw keyMissing(path, `cannot be read: ${unreadableReason(error)}`, {
      hint: keyElsewhere,
      cause: error,
    });
  });
  const parsed = await parseKey(key);
  const why = { hint: keyDamaged, cause: parsed };
  if (key.trim() === "") throw keyMissing(path, `cannot be used: ${path} is empty`, why);
  if (parsed instanceof Error)
    throw keyMissing(path, `cannot be used: ${path} does not contain a private key`, why);
  return key;
}

const keyElsewhere =
  "The cluster was created on another computer or by another user: use it there, or copy the key to this path.";
const keyDamaged =
  "The file was damaged after the cluster was created. Restore it from a copy, or create another cluster.";

const keyMissing = (
  path: string,
  problem: string,
  { hint, cause }: { readonly hint: string; readonly cause: unknown },
): ClusterError =>
  new ClusterError("key-missing", `The cluster's SSH key ${problem}.`, {
    hint,
    facts: { path },
    cause,
  });

/** Transient, because another process may be creating the cluster and may pin the key at any moment. */
const hostKeyUnknown = (name: string, path: string): ClusterError =>
  new ClusterError("connection-failed", `The host key of ${name} is not in ${path}.`, {
    hint: "The cluster is still being created, or was created on another computer: use it there, or copy that file to this path.",
    transient: true,
    facts: { node: name, path },
  });

/**
 * Returns the node to which `connect` logs in first. Doesn't contact a single node. Throws a
 * transient `connection-failed` if none answers. It logs in, because from OpenSSH 9.8 on sshd
 * punishes connections that end without a login.
 */
export async function firstToAnswer<Node extends Destination>(
  nodes: readonly [Node, ...Node[]],
  connect: ConnectionPool["connect"],
  signal: AbortSignal,
): Promise<Node> {
  if (nodes.length === 1) return nodes[0];
  const reach = async (node: Node): Promise<Node> => {
    await connect(node, signal);
    return node;
  };
  try {
    return await Promise.any(nodes.map(reach));
  } catch (error) {
    signal.throwIfAborted();
    // A missing key, or another host key, is no silence.
    const failures: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
    const other = failures.find(
      (each) => each instanceof ClusterError && each.id !== "connection-failed",
    );
    throw other instanceof ClusterError ? other : noneAnswers(nodes, error);
  }
}

function noneAnswers(nodes: readonly Destination[], cause: unknown): ClusterError {
  const names = nodes.map((node) => targetOf(node).name);
  return new ClusterError("connection-failed", `None of ${names.join(", ")} answers over SSH.`, {
    transient: true,
    facts: { nodes: names },
    cause,
  });
}
