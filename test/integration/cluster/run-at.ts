/** Running a command on a cluster of which this machine knows the last address, with servers on loopback as its nodes. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findLastRecord, keepLastRecord } from "../../../src/store/last-record.ts";
import { runOnCluster } from "../../../src/cluster/run-on-cluster.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import type { Checkout } from "../../../src/platform/checkout/checkout.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { closeMasterConnections } from "../../../src/ssh/session/master-connection.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { exampleScope } from "../../support/install-example.ts";
import type { OpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal, wireKey } from "../../support/ssh-options.ts";

export const gone = new ClusterError("cluster-not-found", "There is no such cluster.", {});

export interface Ran {
  readonly status: number | ClusterError;
  /** How often the command ran. */
  readonly times: number;
  readonly wasConnecting: boolean;
  /** How often the backend was asked. */
  readonly asked: number;
  readonly wasAborted: boolean;
  readonly notes: readonly string[];
  /** The creation that the next command would connect to without an answer. */
  readonly knows: string | undefined;
}

export interface Given {
  /** What this machine knows; undefined: nothing. */
  readonly known: ClusterRecord | undefined;
  /** `ran` is the file that the command writes. */
  readonly answer: (signal: AbortSignal, ran: string) => Promise<ClusterRecord>;
  readonly node?: string;
  readonly checkout?: Checkout;
  /** A server with other keys than the usual one. */
  readonly own?: OpensshServer;
  /** How the command ends. */
  readonly end?: string;
  readonly stop?: AbortSignal;
  /** Called with the file that the command writes. */
  readonly onStart?: (ran: string) => void;
}

/** A question that nobody answers. */
export const never = (inner: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => inner.addEventListener("abort", () => reject(inner.reason)));

/** A cluster of one master. */
export function clusterAt(
  port: number,
  creationId = "0123456789abcdef",
  id = "i-0",
): ClusterRecord {
  const node: NodeRecord = {
    id,
    role: "master",
    index: 0,
    state: "running",
    publicAddress: "127.0.0.1",
    privateAddress: "127.0.0.1",
    ssh: { host: "127.0.0.1", port, user: "root" },
    web: { host: "127.0.0.1", httpPort: 80, httpsPort: 443 },
  };
  return {
    id: "demo",
    creationId,
    backend: "cloud",
    region: "us-west-2",
    variant: "oss",
    distribution: "debian-12",
    state: "running",
    createdAt: new Date("2026-01-01T00:00:00Z"),
    expiresAt: undefined,
    nodes: [node],
    directory: "",
  };
}

/** Runs a command like `run`; all nodes have the keys of this server. */
export async function runAt(
  server: OpensshServer,
  { known, answer, node, own, end = "exit 7", checkout, stop = signal, onStart }: Given,
): Promise<Ran> {
  await using scratch = await scratchFolder();
  const root = join(scratch.path, "cluster-e2e", "cloud", "us-west-2");
  const directoryOf = ({ creationId }: ClusterRecord): string => join(root, `demo-${creationId}`);
  const prepare = async (cluster: ClusterRecord): Promise<ClusterRecord> => {
    const directory = directoryOf(cluster);
    await mkdir(directory, { recursive: true });
    const files = creationFiles(directory);
    const pin = createKnownHosts(files.knownHosts);
    const { loginKey, firstHostKey } = own?.port === cluster.nodes[0]!.ssh.port ? own : server;
    await writeFile(files.privateKey, loginKey.privateKey, { mode: 0o600 });
    for (const each of cluster.nodes)
      await pin.pin("127.0.0.1", each.ssh.port, wireKey(firstHostKey.publicKey));
    return { ...cluster, directory };
  };
  if (known !== undefined) await keepLastRecord(await prepare(known));
  const asking = { signal, times: 0 };
  const notes: string[] = [];
  const events = { isConnecting: false };
  const file = join(scratch.path, "ran");
  onStart?.(file);
  const ended = await runOnCluster(
    {
      environment: { ...process.env, XDG_STATE_HOME: scratch.path },
      clock: systemClock,
      progress: { ...silentProgress, note: (text) => void notes.push(text) },
      onConnecting: () => (events.isConnecting = true),
      signal: stop,
    },
    {
      backend: { name: "cloud", scope: exampleScope },
      clusterId: "demo",
      find: async (inner) => {
        asking.signal = inner;
        asking.times += 1;
        return prepare(await answer(inner, file));
      },
      request: {
        words: [`echo ran >>${file}; ${end}`],
        missingFolderHint: "",
        node,
        login: { name: undefined, password: undefined },
        variables: {},
        hasTestEnvironment: false,
        checkout,
        fetches: [],
        isTerminal: false,
      },
    },
  ).catch((error: unknown) => error as ClusterError);
  for (const cluster of [known, clusterAt(0, "fedcba9876543210")]) {
    if (cluster !== undefined) await closeMasterConnections(directoryOf(cluster), process.env);
  }
  const times = existsSync(file) ? (await Bun.file(file).text()).split("ran\n").length - 1 : 0;
  const wasAborted = asking.signal.aborted;
  const knows = (await findLastRecord(root, "demo", 0))?.creationId;
  return {
    knows,
    status: ended,
    times,
    wasConnecting: events.isConnecting,
    asked: asking.times,
    wasAborted,
    notes,
  };
}
