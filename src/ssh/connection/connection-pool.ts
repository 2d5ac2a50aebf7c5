import { readFile } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/clock.ts";
import type { Progress } from "../../system/progress.ts";
import { retry } from "../../system/retry.ts";
import type { Connection } from "./connection.ts";
import { parseKey } from "../parse-key.ts";
import { targetOf } from "./target-of.ts";
import type { KnownHosts } from "../known-hosts.ts";
import { openConnection } from "./open-connection.ts";
import type { ConnectionPool, Destination } from "./pool.ts";
import { createTurns } from "../turns.ts";

export interface PoolOptions {
  /** Path of the cluster's login key. It is read at the first connection, which fails as `key-missing` if there is no such file. */
  readonly privateKeyFile: string;
  readonly knownHosts: KnownHosts;
  readonly clock: Clock;
  readonly progress: Progress;
}

const handshakesAtOnce = 32;
/** Covers the moment in which an sshd that is reloading refuses connections. Callers that can wait longer retry when `error.transient` is set. */
const hiccupMs = 1_000;
const hiccupPauseMs = 200;

/** See ConnectionPool. */
export function createConnectionPool(options: PoolOptions): ConnectionPool {
  const handshakeTurns = createTurns(handshakesAtOnce);
  const disposal = new AbortController();
  const open = new Map<string, Connection>();
  const opening = new Map<string, Promise<Connection>>();

  const openNow = async (node: Destination): Promise<Connection> => {
    try {
      const connection = await handshakeTurns.run(() => login(node, options, disposal.signal), disposal.signal);
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

  return {
    connect: async (node, signal) => {
      signal.throwIfAborted();
      disposal.signal.throwIfAborted();
      const present = open.get(keyOf(node));
      return present?.isOpen === true ? present : await unlessAborted(openOnce(node), signal);
    },
    adopt: (node, connection) => {
      open.set(keyOf(node), connection);
    },
    [Symbol.asyncDispose]: async () => {
      disposal.abort(new ClusterError("connection-failed", "The cluster's connections are closed."));
      await Promise.allSettled(opening.values());
      await Promise.all([...open.values()].map((connection) => connection[Symbol.asyncDispose]()));
      open.clear();
    },
  };
}

/** A machine that returns with another address is another destination. */
const keyOf = ({ id, ssh }: Destination): string => `${id} ${ssh.user}@${ssh.host} ${ssh.port}`;

async function login(node: Destination, options: PoolOptions, signal: AbortSignal): Promise<Connection> {
  const target = targetOf(node);
  const privateKey = await readPrivateKey(options.privateKeyFile);
  const hostKey = await options.knownHosts.expected(target.host, target.port);
  if (hostKey === undefined) throw hostKeyUnknown(target.name, options.knownHosts.path);
  const { clock, progress } = options;
  const openIt = (attemptSignal: AbortSignal): Promise<Connection> =>
    openConnection({ ...target, privateKey, hostKeys: [hostKey], ...limits, clock, progress }, attemptSignal);
  return await retry(openIt, { clock, deadlineMs: clock.now() + hiccupMs, pauseMs: () => hiccupPauseMs }, signal);
}

const limits = {
  connectTimeoutMs: 10_000,
  readyTimeoutMs: 20_000,
  keepaliveMs: 10_000,
  authenticationMayComeLater: false,
};

async function readPrivateKey(path: string): Promise<string> {
  const key = await readFile(path, "utf8").catch((error: unknown) => {
    throw keyMissing(path, `can't be read: ${error instanceof Error ? error.message : String(error)}`, error);
  });
  const parsed = await parseKey(key);
  if (key.trim() === "") throw keyMissing(path, `can't be used: ${path} is empty`);
  if (parsed instanceof Error) throw keyMissing(path, `can't be used: ${path} holds no private key`, parsed);
  return key;
}

const keyMissing = (path: string, problem: string, cause?: unknown): ClusterError =>
  new ClusterError("key-missing", `The cluster's SSH key ${problem}.`, {
    hint: "The cluster was created on another machine, or by another user: use it there, or copy the key to this path.",
    facts: { path },
    cause,
  });

/** Transient, because another process may be creating the cluster and may pin the key at any moment. */
const hostKeyUnknown = (name: string, path: string): ClusterError =>
  new ClusterError("connection-failed", `The host key of ${name} is not in ${path}.`, {
    hint: "Either the cluster is still being created, or it was created on another machine: use it there, or copy that file to this path.",
    transient: true,
    facts: { node: name, path },
  });

/** The opening continues for the other callers that share it. */
async function unlessAborted(opening: Promise<Connection>, signal: AbortSignal): Promise<Connection> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([opening, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
