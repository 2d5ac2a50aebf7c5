import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";
import { layouts } from "../platform/layouts/find-layout.ts";
import type { Layout } from "../platform/layouts/layout.ts";
import { type Login, loginVariables, testEnvironment } from "../platform/test-environment.ts";
import { type ConnectionPool, firstToAnswer } from "../ssh/connection/connection-pool.ts";
import type { Connection } from "../ssh/connection/connection.ts";
import { noteHeldOutput } from "../ssh/session/held-output.ts";
import type { SessionScript, SessionSettings } from "../ssh/session/session-line.ts";
import { type Session, type SessionEnd, startSession } from "../ssh/session/session.ts";
import { findSsh } from "../ssh/find-ssh.ts";
import { creationFiles } from "../store/creation-folder.ts";
import { errorCode, isDiskFull, writePrivateFile } from "../system/files/private-file.ts";
import { ownedTemporaryFolder } from "../system/files/owned-folder.ts";
import { readOwnText } from "../system/files/read-text.ts";
import type { Runtime, Work } from "../system/runtime.ts";
import { slowNote } from "../system/time-limit.ts";
import {
  clusterMasterConnection,
  openConnections,
  openMaskedConnections,
  sshConfig,
  withAdvice,
} from "./connections.ts";
import { correctSleptClocks } from "./correct-slept-clocks.ts";
import { createKeptOutput } from "./events/kept-output.ts";
import { runRecorder } from "./events/record-event.ts";
import { type FetchRequest, type FetchSource, fetchFiles } from "./fetch.ts";
import { type Candidates, type FirstSession, startFirstSession } from "./first-session.ts";
import { findNode, runningMasters } from "./find-cluster.ts";
import { syncCheckout } from "./sync-checkout.ts";

export interface RunRequest {
  /** A single word is a shell line; several words are run exactly as they are. */
  readonly words: readonly string[];
  /** Whether the command is expected to fail. */
  readonly fails?: boolean;
  /** The node's user who runs them; undefined: root. */
  readonly user?: string | undefined;
  /** A node reference; undefined: the first master that answers. */
  readonly node: string | undefined;
  readonly login: Login;
  /** The user's own variables; they override all others. */
  readonly variables: Readonly<Record<string, string>>;
  readonly hasTestEnvironment: boolean;
  /** Advice that the node prints, unchanged, if the test environment's folder is missing. */
  readonly missingFolderHint: string;
  /** Synced to all masters before the command runs. */
  readonly checkout: Checkout | undefined;
  /** Fetched from the node after the command, whatever its status. */
  readonly fetches: readonly FetchRequest[];
  readonly isTerminal: boolean;
  /** Whether the end of its output is recorded, because the secrets of the nodes are known. */
  readonly keepsOutput?: boolean;
}

/** `onConnecting` is called before any error is thrown that occurs while or after connecting to a node. */
export type RunWork = Work & { readonly onConnecting: () => void };

/** A user's command on a node. Disposal closes the connections that the report of its end needs. */
export type NodeRun = AsyncDisposable &
  Pick<Session, "mayHaveBegun"> & { readonly end: Promise<SessionEnd> };

/**
 * Runs a user's command on a node through this machine's ssh, which owns the terminal, stdin and
 * output while it runs. Resolves with the remote command's exit status. If that is as
 * expected, rejects if a file can't be fetched.
 */
export async function runOnNode(
  work: RunWork,
  cluster: ClusterRecord,
  request: RunRequest,
): Promise<number> {
  await using run = startOnNode(work, cluster, request);
  const { report } = await run.end;
  return await report(work.signal);
}

/** Starts `runOnNode`, and returns at once. If aborted in time, the command never begins. */
export function startOnNode(
  { onConnecting, signal, ...runtime }: RunWork,
  cluster: ClusterRecord,
  request: RunRequest,
): NodeRun {
  const resources = new AsyncDisposableStack();
  const state: RunState = { resources, isConnecting: false, mayHaveBegun: () => false };
  const run = async (): Promise<SessionEnd> => {
    const { hasBegun, report } = await carryOut(
      { ...runtime, state, signal },
      cluster,
      request,
    ).catch((error: unknown) => ({
      hasBegun: state.mayHaveBegun(),
      report: () => Promise.reject(error),
    }));
    const reportOrFail = async (reportSignal: AbortSignal): Promise<number> => {
      try {
        return await report(reportSignal);
      } catch (error) {
        if (state.isConnecting) onConnecting();
        throw await withAdvice(error, cluster.directory);
      }
    };
    return { hasBegun, report: reportOrFail };
  };
  const end = run();
  const dispose = async (): Promise<void> => {
    await end;
    await resources.disposeAsync();
  };
  return { mayHaveBegun: () => state.mayHaveBegun(), end, [Symbol.asyncDispose]: dispose };
}

interface RunState {
  readonly resources: AsyncDisposableStack;
  isConnecting: boolean;
  mayHaveBegun: () => boolean;
}

async function carryOut(
  { state, signal, ...runtime }: Work & { readonly state: RunState },
  cluster: ClusterRecord,
  request: RunRequest,
): Promise<SessionEnd> {
  hideOwnValues(request, runtime);
  const chosen = request.node === undefined ? undefined : findNode(cluster, request.node);
  const candidates: Candidates = chosen === undefined ? runningMasters(cluster) : [chosen];
  // A missing ssh is this machine's fault, not the connection's.
  findSsh(runtime.environment);
  const configuration = state.resources.use(await writeConfiguration(cluster));
  state.isConnecting = true;
  // The command's own output bypasses this program; of everything else, only a sync's output is shown.
  const connections = state.resources.use(connectionsFor(request, cluster, runtime));
  // The other connections do it by themselves.
  if (request.checkout === undefined)
    await correctSleptClocks(cluster, connections, runtime, signal);
  else {
    await syncCheckout(
      { connections, progress: runtime.progress, signal },
      cluster,
      request.checkout,
    );
  }
  const kept = createKeptOutput(request.keepsOutput === true);
  const parts = { ...runtime, state, configuration, connections, onOutput: kept.add };
  const { node, session } = await startFirstSession(
    firstSession(cluster, request, parts, candidates),
    signal,
  );
  using recorder = runRecorder(cluster, { ...request, ...kept }, [node], runtime);
  const connect = async (inner: AbortSignal): Promise<Connection> =>
    connections.connect(node, inner);
  using _held = request.isTerminal
    ? undefined
    : noteHeldOutput({
        name: nodeReference(node),
        ended: session.commandEnded,
        run: async (command, inner) => (await connect(inner)).run(command, inner),
        ...runtime,
      });
  const ended = await endOf(session, connect);
  state.mayHaveBegun = () => ended.hasBegun;
  if (!ended.hasBegun) {
    recorder.end([], "it never began");
    return ended;
  }
  const commandStatus = await ended.report(signal);
  recorder.end([commandStatus]);
  const open = async (inner: AbortSignal): Promise<FetchSource> =>
    fetchSource(cluster, node, request, await connect(inner));
  const status = await fetchFiles(
    commandStatus,
    request.fetches,
    { open, progress: runtime.progress, fails: request.fails },
    signal,
  );
  return { hasBegun: true, report: async () => status };
}

const connectionsFor = ({ checkout }: RunRequest, cluster: ClusterRecord, runtime: Runtime) =>
  checkout === undefined
    ? openConnections(cluster.directory, runtime)
    : openMaskedConnections(cluster, runtime);

function fetchSource(
  cluster: ClusterRecord,
  node: NodeRecord,
  request: RunRequest,
  connection: Connection,
): FetchSource {
  const { settings } = sessionScript(cluster, node, request);
  return { connection, node: nodeReference(node), settings };
}

interface SessionParts extends Runtime {
  readonly state: RunState;
  readonly configuration: SshConfiguration;
  readonly connections: Pick<ConnectionPool, "connect">;
  readonly onOutput: (chunk: Uint8Array) => void;
}

function firstSession(
  cluster: ClusterRecord,
  request: RunRequest,
  { environment, progress, state, configuration, connections, onOutput }: SessionParts,
  candidates: Candidates,
): FirstSession {
  return {
    candidates,
    masterOf: async (node) =>
      configuration.isInFolder ? clusterMasterConnection(cluster, node, environment) : undefined,
    sshConfigFile: configuration.path,
    connections,
    progress: request.isTerminal ? undefined : progress,
    start: ({ node, master }, signal) => {
      const session = startSession(
        {
          environment,
          script: sessionScript(cluster, node, request),
          connect: async (inner) => connections.connect(node, inner),
          sshConfigFile: configuration.path,
          host: nodeReference(node),
          sudo: true,
          loginUser: node.ssh.user,
          terminal: request.isTerminal,
          stdio: ["inherit", "inherit", "inherit"],
          onOutput,
          master,
        },
        signal,
      );
      state.mayHaveBegun = session.mayHaveBegun;
      return session;
    },
  };
}

/**
 * Waits for the session's end. Over a login that is shared, only another login shows whether the
 * node still answers; if it is silent, the user learns it.
 */
async function endOf(
  session: Session,
  connect: (signal: AbortSignal) => Promise<Connection>,
): Promise<SessionEnd> {
  const ended = new AbortController();
  using _slow = slowNote(() => {
    if (!session.hasLoggedIn()) connect(ended.signal).catch(() => {});
  });
  try {
    return await session.end;
  } finally {
    ended.abort(new Error("the session has ended"));
  }
}

/** Writes the file beside the key or, if that folder is read-only or its disk is full, into a temporary one. */
export async function writeConfiguration(cluster: ClusterRecord): Promise<SshConfiguration> {
  const text = await sshConfig(cluster);
  const path = creationFiles(cluster.directory).sshConfig;
  try {
    // Writing it means waiting for the disk.
    if ((await readOwnText(path).catch(() => "")) !== text) await writePrivateFile(path, text);
    else await access(cluster.directory, constants.W_OK);
    return { path, isInFolder: true, [Symbol.asyncDispose]: async () => {} };
  } catch (error) {
    if (!isDiskFull(error) && !["EROFS", "EACCES", "EPERM"].includes(errorCode(error) ?? ""))
      throw error;
  }
  const folder = await ownedTemporaryFolder();
  const elsewhere = join(folder.held, "ssh_config");
  await writePrivateFile(elsewhere, text);
  return {
    path: elsewhere,
    isInFolder: false,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

interface SshConfiguration extends AsyncDisposable {
  readonly path: string;
  /** Whether the cluster's folder is writable. */
  readonly isInFolder: boolean;
}

export function hideOwnValues(
  { login }: Pick<RunRequest, "login">,
  { progress }: Pick<Runtime, "progress">,
): void {
  for (const value of [login.name, login.password]) if (value !== undefined) progress.hide(value);
}

/** Resolves with the first master that answers. Throws `node-not-found`, `connection-failed`. */
export async function firstMaster(work: Work, cluster: ClusterRecord): Promise<NodeRecord> {
  const masters = runningMasters(cluster);
  if (masters.length === 1) return masters[0];
  await using connections = openConnections(cluster.directory, work);
  return await firstToAnswer(masters, connections.connect, work.signal);
}

/**
 * The node itself determines which layout it has, which saves a round trip. If it has none yet, the
 * session reports which folder is missing.
 */
export function sessionScript(
  cluster: ClusterRecord,
  target: NodeRecord,
  {
    login,
    variables,
    hasTestEnvironment,
    words,
    user,
    missingFolderHint,
  }: Omit<RunRequest, "node" | "isTerminal">,
): SessionScript {
  const settingsFor = (layout: Layout, folder: string | undefined): SessionSettings => {
    if (!hasTestEnvironment) {
      const own = { ...loginVariables(login, layout), ...variables };
      return {
        whenExists: folder,
        environmentFile: undefined,
        variables: own,
        workingDirectory: undefined,
      };
    }
    const environment = testEnvironment({
      cluster,
      target,
      layout,
      login,
      ...(folder !== undefined && { folder }),
    });
    return {
      whenExists: folder,
      ...environment,
      variables: { ...environment.variables, ...variables },
    };
  };
  const settings = layouts.flatMap((layout) =>
    layout.testsFolders.map((folder) => settingsFor(layout, folder)),
  );
  return {
    settings: [...settings, settingsFor(layouts[0], undefined)],
    words,
    user,
    missingFolderHint,
  };
}
