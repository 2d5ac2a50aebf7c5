import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { ClusterError, hasErrorId, messageOf, revised } from "../errors.ts";
import { commandName, runCommand } from "../references.ts";
import {
  type ClusterName,
  type ClusterRecord,
  type NodeRecord,
  isReachable,
} from "../model/cluster-record.ts";
import { TooManySecrets, hideSecrets } from "../platform/cluster-secrets.ts";
import { renderSshConfig, createKnownHosts } from "../ssh/openssh-files.ts";
import { type ConnectionPool, createConnectionPool } from "../ssh/connection/connection-pool.ts";
import type { Connection, Destination } from "../ssh/connection/connection.ts";
import { type Forward, forwardPort } from "../ssh/forward-port.ts";
import { correctSleptClocks } from "./correct-slept-clocks.ts";
import { recordStep } from "./events/record-event.ts";
import { type MasterConnection, masterConnection } from "../ssh/session/master-connection.ts";
import {
  creationFiles,
  creationOfDirectory,
  isCutShort,
  isEndedCreation,
} from "../store/creation-folder.ts";
import { isAccessible } from "../system/files/private-file.ts";
import { readOwnText } from "../system/files/read-text.ts";
import { once } from "../system/concurrency.ts";
import type { Environment, Runtime, Work } from "../system/runtime.ts";
import { orAborted } from "../system/time-limit.ts";

export interface MaskedConnections extends ConnectionPool {
  /** Connects in the same way, but reads the secrets only once a node's text is going to be shown. */
  readonly forQuestions: Pick<ConnectionPool, "connect">;
  /** Reads the secrets again, as far as possible, because an error may quote secrets that the platform has created since. */
  readAgain(): Promise<void>;
  /** Does that unless they are all known: until the installation has ended, a text that a node sends after a while may quote new secrets. */
  readNew(): Promise<void>;
  /** Why the cluster's secrets could not be read; undefined if they are hidden, or if the cluster has none yet. */
  problem(): string | undefined;
  /** Why no text from the cluster may be shown or saved; undefined if it may. */
  refusal(): ClusterError | undefined;
}

/** How long a first master that answers may delay connections to other nodes. The pool gives up sooner on one that doesn't answer. */
const readLimitMs = 60_000;
/** Short, because the user waits for an error that is printed afterwards. */
const rereadLimitMs = 5_000;

interface Masking {
  /** The first attempt to read the secrets. */
  first?: Promise<void>;
  /** Whether all secrets are known. */
  isKnown: boolean;
  /** What was said about files that can't be masked. */
  readonly unmasked: Set<string>;
  problem?: string;
  refusal?: TooManySecrets;
}

/**
 * Opens connections to the nodes of a cluster that another process may have created. They deliver no text from a node
 * before the cluster's secrets have been read from the first master and hidden, so that every command masks them;
 * commands whose output is hidden don't wait for that. If the first master can't be reached, other nodes wait for it
 * only once. The secrets are read as soon as a connection to it succeeds, and again at each use of it until its
 * installation has ended. If there are too many secrets, no text of any node is delivered, so that a flood of them
 * can't uncover others. `pool` may contain connections that the caller has opened already.
 */
export function openMaskedConnections(
  cluster: ClusterRecord,
  runtime: Omit<Runtime, "environment">,
  pool: ConnectionPool = openConnections(cluster.directory, runtime),
): MaskedConnections {
  const secrets = maskBySecrets(firstMasterOf(cluster), pool, runtime);
  const { state, untilMasked, readAgain, readNew } = secrets;
  const clocks: { set?: Promise<void> } = {};
  const masking =
    (when: "now" | "needed"): ConnectionPool["connect"] =>
    async (node, signal) => {
      clocks.set ??= correctSleptClocks(cluster, pool, runtime, signal).catch(() => {});
      await orAborted(clocks.set, signal);
      const masked = once(async () => untilMasked(node, signal));
      if (when === "now") masked().catch(() => {});
      try {
        return withheld(await pool.connect(node, signal), masked);
      } catch (error) {
        if (when === "now") await masked().catch(() => {});
        throw error;
      }
    };
  return {
    adopt: (node, connection) => pool.adopt(node, connection),
    connect: masking("now"),
    forQuestions: { connect: masking("needed") },
    readAgain,
    readNew,
    problem: () => state.problem,
    refusal: () => state.refusal,
    [Symbol.asyncDispose]: async () => {
      secrets.end();
      await pool[Symbol.asyncDispose]();
    },
  };
}

/** Which texts may be shown, by what the first master has told of the cluster's secrets. */
function maskBySecrets(
  firstMaster: FirstMaster,
  pool: ConnectionPool,
  runtime: Omit<Runtime, "environment">,
) {
  const state: Masking = { isKnown: false, unmasked: new Set() };
  const { read, end } = secretsReader(pool, runtime, state);
  const readFirst = async (limitMs: number): Promise<void> => {
    if ("problem" in firstMaster) return void (state.problem = firstMaster.problem);
    try {
      await read(firstMaster, AbortSignal.timeout(limitMs));
    } catch (error) {
      state.problem = messageOf(error);
      runtime.progress.detail(1, `Cannot read the cluster's secrets: ${state.problem}`);
    }
  };

  /** Resolves once text from this node may be shown. */
  const untilMasked = async (node: Destination, signal: AbortSignal): Promise<void> => {
    const isFirst = state.first === undefined;
    state.first ??= readFirst(readLimitMs);
    await orAborted(state.first, signal);
    if (state.refusal !== undefined) throw state.refusal;
    const hasJustBeenRead = isFirst && state.problem === undefined;
    if (!state.isKnown && !hasJustBeenRead && node.id === firstMaster.id) await read(node, signal);
  };

  const readWithin = async (limitMs: number): Promise<void> => {
    await readFirst(limitMs);
    if (state.refusal !== undefined) throw state.refusal;
  };
  const readAgain = async (): Promise<void> => readWithin(rereadLimitMs);
  const readNew = async (): Promise<void> => {
    if (state.first === undefined) await (state.first = readWithin(readLimitMs));
    else if (!state.isKnown) await readAgain();
  };

  return { state, untilMasked, readAgain, readNew, end };
}

/**
 * Reads the secrets for one caller at a time, and to the end, even if nobody waits so long: a busy node would never come to the end of several that are
 * cut short. What had begun before a call may have missed what is new.
 */
function secretsReader(
  pool: ConnectionPool,
  runtime: Omit<Runtime, "environment">,
  state: Masking,
) {
  const ending = new AbortController();
  const { signal: ended } = ending;
  const newest = { reading: Promise.resolve() };
  const readWhole = async (master: Destination): Promise<void> => {
    const connection = await pool.connect(master, ended);
    try {
      state.isKnown = await hideSecrets({ ...runtime, signal: ended }, connection, state.unmasked);
      delete state.problem;
    } catch (error) {
      if (error instanceof TooManySecrets) state.refusal = error;
      throw error;
    }
  };
  const read = async (master: Destination, signal: AbortSignal): Promise<void> => {
    const { reading } = newest;
    const idle = reading.catch(() => {});
    await orAborted(idle, signal);
    if (newest.reading === reading) newest.reading = readWhole(master);
    await orAborted(newest.reading, signal);
  };
  return { read, end: () => ending.abort() };
}

/** The first master, or why it can't be queried now. The id is known in both cases, because the master may be reached later. */
type FirstMaster = Destination | { readonly id: string | undefined; readonly problem: string };

function firstMasterOf({ nodes }: ClusterRecord): FirstMaster {
  const master = nodes.find((node) => node.role === "master" && node.index === 0);
  if (master === undefined || master.state === "ended" || master.ssh.host === "")
    return { id: master?.id, problem: "the cluster has no first master" };
  const isOff = master.state === "stopped" || master.state === "paused";
  return isOff
    ? { id: master.id, problem: `the cluster's first master is ${master.state}` }
    : master;
}

/** `what` are the texts that somebody sees although the secrets in them aren't known. */
export const secretsWarning = (what: string, problem: string): string =>
  `${what} may show secrets: cannot read from the first master what to mask (${problem})`;

/** Like `connection`, but delivers and shows no text from the node before `masked` resolves. An answer of which nothing is shown needs no masks. */
function withheld(connection: Connection, masked: () => Promise<void>): Connection {
  return {
    get isOpen() {
      return connection.isOpen;
    },
    run: async (command, signal) => {
      const { isOutputHidden = false, isQuoted, onOutput, receive } = command;
      if (!isOutputHidden || onOutput !== undefined || receive !== undefined)
        await orAborted(masked(), signal);
      if (isQuoted !== undefined) {
        const answer = await connection.run(command, signal);
        if (isQuoted(answer)) await orAborted(masked(), signal);
        return answer;
      }
      const [masking, result] = await Promise.allSettled([
        orAborted(masked(), signal),
        connection.run(command, signal),
      ]);
      if (masking.status === "rejected") throw masking.reason;
      if (result.status === "rejected") throw result.reason;
      return result.value;
    },
    upload: async (source, target, signal) => {
      await orAborted(masked(), signal);
      await connection.upload(source, target, signal);
    },
    openPort: async (address, signal) => {
      await orAborted(masked(), signal);
      return await connection.openPort(address, signal);
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

/**
 * Opens connections to the nodes of the cluster whose key and known hosts are in this folder. The log of what is done on the nodes goes there too.
 */
export function openConnections(
  directory: string,
  { clock, progress }: Omit<Runtime, "environment">,
): ConnectionPool {
  const files = creationFiles(directory);
  // A cluster that was created on another machine has no folder here.
  if (existsSync(directory))
    progress.logTo(files.log, (change) => recordStep(directory, change, progress));
  const pool = createConnectionPool({
    privateKeyFile: files.privateKey,
    knownHosts: createKnownHosts(files.knownHosts),
    clock,
    progress,
  });
  return {
    adopt: (node, connection) => pool.adopt(node, connection),
    connect: async (node, signal) => {
      try {
        return await pool.connect(node, signal);
      } catch (error) {
        throw await withAdvice(error, directory);
      }
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

/**
 * Returns the error with advice on this program's commands, which the SSH code doesn't know. If the creation in this folder was interrupted, that explains
 * why a node is missing or can't be reached. A key that went with its cluster is `cluster-not-found`.
 */
export async function withAdvice(error: unknown, directory: string): Promise<unknown> {
  if (hasErrorId(error, "key-missing") && (await isEndedCreation(directory)))
    return destroyed(directory, error);
  const isOfConnection = hasErrorId(error, "connection-failed");
  if (!isOfConnection && !hasErrorId(error, "node-not-found")) return error;
  const hint = (await isCutShort(directory))
    ? interrupted
    : (error.hint ?? (isOfConnection ? checkMachine : undefined));
  if (hint === undefined || hint === error.hint) return error;
  return revised(error, { hint, transient: error.transient, cause: error.cause });
}

function destroyed(directory: string, cause: unknown): ClusterError {
  const id = creationOfDirectory(directory)?.clusterId ?? "";
  return new ClusterError("cluster-not-found", `Cluster "${id}" was destroyed meanwhile.`, {
    hint: `${runCommand("list")} to see all clusters.`,
    facts: { cluster: id },
    cause,
  });
}

/** For what can succeed all the same, and for work on several nodes, whose failures come without advice. */
export async function warnIfCutShort(
  { directory }: ClusterName,
  { progress }: Pick<Runtime, "progress">,
): Promise<void> {
  if (await isCutShort(directory)) progress.warn(interrupted);
}

const interrupted = `The create of this cluster was interrupted. Repeat it, which first removes what is left, or ${runCommand("destroy", "run")}.`;
const checkMachine = `${runCommand("inspect")} to see whether that machine still runs, and ${commandName("doctor")} to see whether it accepts connections from here.`;

export async function clusterKey(cluster: ClusterRecord) {
  const path = creationFiles(cluster.directory).privateKey;
  return { path, isHere: await isAccessible(path) };
}

/** Throws `key-missing`. */
export async function assertKeyIsHere(cluster: ClusterRecord): Promise<void> {
  if (!(await clusterKey(cluster)).isHere) throw keyMissing(cluster);
}

export function keyMissing(cluster: ClusterRecord): ClusterError {
  const path = creationFiles(cluster.directory).privateKey;
  const handOver =
    cluster.backend === "cloud"
      ? ` ${runCommand("export")} there, and ${commandName("import")} here.`
      : "";
  return new ClusterError(
    "key-missing",
    `The SSH key of cluster "${cluster.id}" is not on this computer.`,
    {
      hint: `The cluster was created on another computer, or the key was deleted.${handOver} The key belongs at ${path}.`,
      facts: { cluster: cluster.id, path },
    },
  );
}

/** Returns an OpenSSH configuration with one `Host` per running node. Throws `key-missing` if this machine cannot log in. */
export async function sshConfig(cluster: ClusterRecord): Promise<string> {
  await assertKeyIsHere(cluster);
  const files = creationFiles(cluster.directory);
  const reachable = cluster.nodes.filter(isReachable);
  return renderSshConfig(reachable, {
    identityFile: files.privateKey,
    knownHostsFile: files.knownHosts,
    clusterId: cluster.id,
  });
}

/**
 * Returns the master connection to one node of a cluster. If an address, a pinned host key or the login key has changed, that is a new connection: ssh
 * logs in again and checks the keys. Undefined if this machine lacks a key.
 */
export async function clusterMasterConnection(
  { directory }: Pick<ClusterName, "directory">,
  node: Destination,
  environment: Environment,
): Promise<MasterConnection | undefined> {
  const files = creationFiles(directory);
  const block = renderSshConfig([node], {
    identityFile: files.privateKey,
    knownHostsFile: files.knownHosts,
  });
  try {
    const [knownHosts, key] = await Promise.all([
      readOwnText(files.knownHosts),
      stat(files.privateKey),
    ]);
    const keyVersion = [key.ino, key.size, key.mtimeMs, key.mode].join(" ");
    return masterConnection(directory, [block, knownHosts, keyVersion], environment);
  } catch {
    return undefined;
  }
}

/** Logs in to the node, and leads a port of 127.0.0.1 to one of the node's. Throws the errors of connections, and `bad-usage`. */
export async function forwardToNode(
  work: Work,
  cluster: ClusterRecord,
  { node, port, localPort }: Pick<Forward, "port" | "localPort"> & { readonly node: NodeRecord },
) {
  await assertKeyIsHere(cluster);
  const connections = openConnections(cluster.directory, work);
  const closeConnections = () => connections[Symbol.asyncDispose]();
  try {
    await connections.connect(node, work.signal);
    const request = {
      host: node.privateAddress ?? node.ssh.host,
      port,
      localPort,
      connect: async (inner: AbortSignal) => connections.connect(node, inner),
      onFailure: (reason: string) => work.progress.note(`Port ${port} does not answer: ${reason}.`),
    };
    const forward = await forwardPort(request, work.signal);
    return {
      localPort: forward.localPort,
      [Symbol.asyncDispose]: async () => {
        await forward[Symbol.asyncDispose]();
        await closeConnections();
      },
    };
  } catch (error) {
    await closeConnections();
    throw error;
  }
}
