import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import type { Runtime } from "../system/runtime.ts";
import { ClusterError } from "../errors.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";
import type { Layout } from "../platform/layout.ts";
import { layouts } from "../platform/layouts/find-layout.ts";
import { loginVariables, testEnvironment } from "../platform/test-environment.ts";
import type { Login } from "../platform/test-environment.ts";
import type { Connection } from "../ssh/connection/connection.ts";
import { eitherSignal } from "../ssh/either-signal.ts";
import { firstToAnswer } from "../ssh/connection/first-to-answer.ts";
import { findSsh, runSession, type SessionAttempt } from "../ssh/session/session.ts";
import type { SessionScript, SessionSettings } from "../ssh/session/session-script.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { creationFiles } from "../system/files/creation-folder.ts";
import { errorCode } from "../system/error-code.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { systemTemporaryFolder } from "../system/files/temporary-folder.ts";
import type { FetchSource } from "./fetch/fetch-file.ts";
import { fetchFiles } from "./fetch/fetch-files.ts";
import type { FetchRequest } from "./fetch/fetch-request.ts";
import { openConnections, withAdvice } from "./connections/cluster-connections.ts";
import { clusterMasterConnection } from "./connections/cluster-master-connection.ts";
import { openMaskedConnections } from "./connections/masked-connections.ts";
import { findNode } from "./node-reference.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { nodeReference } from "../model/cluster-record.ts";
import { sshConfig } from "./connections/cluster-key.ts";
import { syncCheckout } from "./sync-checkout.ts";
import { readOwnText } from "../system/files/read-text.ts";

export interface RunRequest {
  /** A single word is a shell line; several words are run exactly as they are. */
  readonly words: readonly string[];
  /** A node reference; undefined: the first master that answers. */
  readonly node: string | undefined;
  readonly login: Login;
  /** The user's own variables; they override all others. */
  readonly variables: Readonly<Record<string, string>>;
  readonly hasTestEnvironment: boolean;
  /** What to do if the test environment's folder is missing. The node prints it unchanged. */
  readonly missingFolderHint: string;
  /** Synced to all masters before the command runs. */
  readonly checkout: Checkout | undefined;
  /** Fetched from the node after the command, whatever its status. */
  readonly fetches: readonly FetchRequest[];
  readonly isTerminal: boolean;
  /** For a cluster that may be gone; absent if it isn't. */
  readonly attempt?: SessionAttempt;
}

/**
 * Runs a user's command on a node through this machine's ssh, which meanwhile owns the terminal, stdin and output. Resolves with the remote command's
 * exit status; if that is 0, rejects if a file can't be fetched. Calls `onConnecting` once the request is known to be valid.
 */
export async function runOnNode(
  cluster: ClusterRecord,
  request: RunRequest,
  { onConnecting, ...runtime }: Runtime & { readonly onConnecting: () => void },
  signal: AbortSignal,
): Promise<number> {
  const { name, password } = request.login;
  for (const value of [name, password]) if (value !== undefined) runtime.progress.hide(value);
  const chosen = request.node === undefined ? undefined : findNode(cluster, request.node);
  const candidates: Candidates = chosen === undefined ? runningMasters(cluster) : [chosen];
  // A missing ssh is this machine's fault, not the connection's.
  findSsh(runtime.environment);
  await using configuration = await writeConfiguration(cluster);
  onConnecting();
  // The command's own output bypasses this program; of everything else, only a sync's output is shown.
  await using connections =
    request.checkout === undefined
      ? openConnections(cluster.directory, runtime)
      : openMaskedConnections(cluster, runtime);
  if (request.checkout !== undefined) {
    await syncCheckout(cluster, request.checkout, { connections, progress: runtime.progress }, signal);
  }
  try {
    return await converse(cluster, request, { candidates, connections, runtime, configuration }, signal);
  } catch (error) {
    throw withAdvice(error);
  }
}

/** Writes the file beside the key or, if that folder is read-only, into a temporary one. */
async function writeConfiguration(cluster: ClusterRecord): Promise<SshConfiguration> {
  const text = await sshConfig(cluster);
  const path = creationFiles(cluster.directory).sshConfig;
  try {
    // Writing it means waiting for the disk.
    if ((await readOwnText(path).catch(() => "")) !== text) await writePrivateFile(path, text);
    else await access(cluster.directory, constants.W_OK);
    return { path, text, isInFolder: true, [Symbol.asyncDispose]: async () => {} };
  } catch (error) {
    if (!["EROFS", "EACCES", "EPERM"].includes(errorCode(error) ?? "")) throw error;
  }
  const folder = await systemTemporaryFolder();
  const elsewhere = join(folder.path, "ssh_config");
  await writePrivateFile(elsewhere, text);
  return { path: elsewhere, text, isInFolder: false, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

interface SshConfiguration extends AsyncDisposable {
  readonly path: string;
  readonly text: string;
  /** Whether the cluster's folder is writable. */
  readonly isInFolder: boolean;
}

interface Way {
  readonly candidates: Candidates;
  readonly connections: ConnectionPool;
  readonly runtime: Pick<Runtime, "environment" | "progress">;
  readonly configuration: SshConfiguration;
}

async function converse(
  cluster: ClusterRecord,
  request: RunRequest,
  { candidates, connections, runtime, configuration }: Way,
  signal: AbortSignal,
): Promise<number> {
  const node = await firstAnswer(candidates, request.attempt, signal);
  const script = sessionScript(cluster, node, request);
  const connect = async (inner: AbortSignal): Promise<Connection> => connections.connect(node, inner);
  const status = await runSession(
    {
      sshConfigFile: configuration.path,
      host: nodeReference(node),
      sudo: true,
      loginUser: node.ssh.user,
      terminal: request.isTerminal,
      stdio: ["inherit", "inherit", "inherit"],
      environment: runtime.environment,
      master: configuration.isInFolder
        ? await clusterMasterConnection(
            cluster,
            { sshConfig: configuration.text, host: nodeReference(node) },
            runtime.environment,
          )
        : undefined,
      script,
      attempt: request.attempt,
      connect,
    },
    signal,
  );
  const open = async (inner: AbortSignal): Promise<FetchSource> => ({
    connection: await connect(inner),
    node: nodeReference(node),
    settings: script.settings,
  });
  return await fetchFiles(status, request.fetches, { open, progress: runtime.progress }, signal);
}

async function firstAnswer(
  candidates: Candidates,
  attempt: SessionAttempt | undefined,
  signal: AbortSignal,
): Promise<NodeRecord> {
  if (attempt === undefined) return firstToAnswer(candidates, greetingLimitMs, signal);
  using either = eitherSignal([signal, attempt.refuted]);
  return await firstToAnswer(candidates, greetingLimitMs, either.signal);
}

/** How long masters may take to answer at all. */
const greetingLimitMs = 15_000;

type Candidates = readonly [NodeRecord, ...NodeRecord[]];

function runningMasters(cluster: ClusterRecord): Candidates {
  const [first, ...others] = cluster.nodes.filter((node) => node.role === "master" && node.state === "running");
  if (first !== undefined) return [first, ...others];
  throw new ClusterError("node-not-found", `Cluster "${cluster.id}" has no running master.`, {
    hint: "Run the inspect command to see its nodes, and choose one with `node`.",
    facts: { cluster: cluster.id },
  });
}

/** The node itself determines which layout it has, which saves a round trip. If it has none yet, the session reports which folder is missing. */
function sessionScript(cluster: ClusterRecord, target: NodeRecord, request: RunRequest): SessionScript {
  const settingsFor = (layout: Layout, whenExists: string | undefined): SessionSettings => {
    const { login, variables } = request;
    if (!request.hasTestEnvironment) {
      const own = { ...loginVariables(login, layout), ...variables };
      return { whenExists, environmentFile: undefined, variables: own, workingDirectory: undefined };
    }
    const environment = testEnvironment({ cluster, target, layout, login });
    return { whenExists, ...environment, variables: { ...environment.variables, ...variables } };
  };
  const settings = layouts.map((layout) => settingsFor(layout, layout.testsFolder));
  return {
    settings: [...settings, settingsFor(layouts[0], undefined)],
    words: request.words,
    missingFolderHint: request.missingFolderHint,
  };
}
