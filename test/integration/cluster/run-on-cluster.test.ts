/** `run` connects to the last known address while the backend is asked. What the backend says decides until the node has proved its key. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { keepLastRecord } from "../../../src/cluster/connections/last-record.ts";
import { runOnCluster } from "../../../src/cluster/run-on-cluster.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import type { Checkout } from "../../../src/platform/checkout/checkout.ts";
import { createKnownHosts } from "../../../src/ssh/known-hosts.ts";
import { closeMasterConnections } from "../../../src/ssh/session/master-connection.ts";
import { creationFiles } from "../../../src/system/files/creation-folder.ts";
import { silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { freePort } from "../../support/free-port.ts";
import { opensshLack, type OpensshServer, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal, wireKey } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";

setDefaultTimeout(30_000);

const gone = new ClusterError("cluster-not-found", "There is no such cluster.", {});

interface Ran {
  readonly status: number | ClusterError;
  /** How often the command ran. */
  readonly times: number;
  readonly wasConnecting: boolean;
  readonly wasAborted: boolean;
}

interface Given {
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
}

describe.skipIf(opensshLack !== undefined)(
  `running on a cluster that is asked about (${opensshLack ?? "here"})`,
  () => {
    const hold: { server?: OpensshServer; other?: OpensshServer } = {};
    const server = (): OpensshServer => hold.server!;

    beforeAll(async () => {
      [hold.server, hold.other] = await Promise.all([startOpensshServer([]), startOpensshServer([])]);
    });
    afterAll(async () => {
      await hold.server![Symbol.asyncDispose]();
      await hold.other![Symbol.asyncDispose]();
    });

    /** A cluster of one master, with its folder below this one. */
    function clusterAt(port: number, creationId = "0123456789abcdef", id = "i-0"): ClusterRecord {
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

    async function run({ known, answer, node, own, end = "exit 7", checkout }: Given): Promise<Ran> {
      await using scratch = await scratchFolder();
      const root = join(scratch.path, "cluster-e2e", "cloud", "us-west-2");
      const directoryOf = ({ creationId }: ClusterRecord): string => join(root, `demo-${creationId}`);
      const prepare = async (cluster: ClusterRecord): Promise<ClusterRecord> => {
        const directory = directoryOf(cluster);
        await mkdir(directory, { recursive: true });
        const files = creationFiles(directory);
        const pin = createKnownHosts(files.knownHosts);
        const { loginKey, firstHostKey } = own?.port === cluster.nodes[0]!.ssh.port ? own : server();
        await writeFile(files.privateKey, loginKey.privateKey, { mode: 0o600 });
        for (const each of cluster.nodes) await pin.pin("127.0.0.1", each.ssh.port, wireKey(firstHostKey.publicKey));
        return { ...cluster, directory };
      };
      if (known !== undefined) await keepLastRecord(await prepare(known));
      const asking = { signal };
      const events = { isConnecting: false };
      const file = join(scratch.path, "ran");
      const ended = await runOnCluster(
        {
          backend: { name: "cloud", place: { kind: "region", name: "us-west-2", option: "region" } },
          clusterId: "demo",
          find: async (inner) => {
            asking.signal = inner;
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
        {
          environment: { ...process.env, XDG_STATE_HOME: scratch.path },
          clock: systemClock,
          progress: silentProgress,
          onConnecting: () => (events.isConnecting = true),
        },
        signal,
      ).catch((error: unknown) => error as ClusterError);
      for (const cluster of [known, clusterAt(0, "fedcba9876543210")]) {
        if (cluster !== undefined) await closeMasterConnections(directoryOf(cluster), process.env);
      }
      const times = existsSync(file) ? (await Bun.file(file).text()).split("ran\n").length - 1 : 0;
      return { status: ended, times, wasConnecting: events.isConnecting, wasAborted: asking.signal.aborted };
    }

    const never = (inner: AbortSignal): Promise<never> =>
      new Promise((_resolve, reject) => inner.addEventListener("abort", () => reject(inner.reason)));
    const connectionsTo = async (to: OpensshServer): Promise<number> =>
      (await to.log()).split("Connection from ").length - 1;
    /** Resolves when sshd has written down one more connection. */
    const nextConnection = async (to: OpensshServer): Promise<void> => {
      const before = (await to.log()).length;
      await until("ssh has connected", async () => (await to.log()).slice(before).includes("Connection"));
    };

    test("a command needs no answer if the node has the pinned key", async () => {
      const known = clusterAt(server().port);
      expect(await run({ known, answer: never })).toEqual({
        status: 7,
        times: 1,
        wasConnecting: true,
        wasAborted: true,
      });
    });

    test("the same answer changes nothing", async () => {
      const known = clusterAt(server().port);
      expect(await run({ known, answer: async () => known })).toMatchObject({
        status: 7,
        times: 1,
        wasConnecting: true,
      });
    });

    test("without a last record the answer decides", async () => {
      expect(await run({ known: undefined, answer: async () => clusterAt(server().port) })).toMatchObject({
        status: 7,
        times: 1,
      });
      expect(await run({ known: undefined, answer: () => Promise.reject(gone) })).toMatchObject({
        status: gone,
        times: 0,
      });
    });

    test.each([
      ["at once", async () => {}],
      ["after the connection", async () => nextConnection(hold.other!)],
    ])(
      "a cluster that is gone is reported if its address belongs to another machine; the answer comes %s",
      async (_when, wait) => {
        const known = clusterAt(hold.other!.port);
        const answer = async (): Promise<never> => {
          await wait();
          throw gone;
        };
        expect(await run({ known, answer })).toMatchObject({ status: gone, times: 0, wasConnecting: false });
      },
    );

    test("a cluster that is gone is reported if nobody listens", async () => {
      const known = clusterAt(await freePort());
      expect(await run({ known, answer: () => Promise.reject(gone) })).toMatchObject({ status: gone, times: 0 });
    });

    // Without the answer, silent masters would be given up after 15 s.
    test.each([
      ["reported at once as gone", () => Promise.reject(gone), { status: gone, times: 0, wasConnecting: false }],
      [
        "used at once at its new address",
        async () => clusterAt(server().port),
        { status: 7, times: 1, wasConnecting: true },
      ],
    ])(
      "a cluster whose known addresses are silent is %s",
      async (_what, found, expected) => {
        const met = Promise.withResolvers<void>();
        await using silent = createServer(() => met.resolve()).listen(0, "127.0.0.1");
        await once(silent, "listening");
        const cluster = clusterAt((silent.address() as AddressInfo).port);
        const [node] = cluster.nodes;
        const known = { ...cluster, nodes: [node!, { ...node!, id: "i-2", index: 1 }] };
        const answer = async (): Promise<ClusterRecord> => {
          await met.promise;
          return found();
        };
        expect(await run({ known, answer })).toMatchObject(expected);
      },
      10_000,
    );

    test("a command that has begun is never run again, even if another cluster has the id now", async () => {
      await using own = await startOpensshServer([]);
      const known = clusterAt(own.port);
      const answer = async (_inner: AbortSignal, ran: string): Promise<ClusterRecord> => {
        await until("the command runs", () => existsSync(ran));
        return clusterAt(server().port, "fedcba9876543210");
      };
      const { status, times } = await run({ known, answer, own, end: `kill -KILL ${own.pid} $PPID` });
      expect(status).toMatchObject({ id: "connection-failed" });
      expect(times).toBe(1);
    });

    test.each([
      ["another creation of the same id", "fedcba9876543210"],
      ["the same creation with another address", "0123456789abcdef"],
    ])("%s is used instead", async (_what, creationId) => {
      const known = clusterAt(await freePort());
      const answer = async (): Promise<ClusterRecord> => clusterAt(server().port, creationId, "i-1");
      expect(await run({ known, answer })).toMatchObject({ status: 7, times: 1, wasConnecting: true });
    });

    test("of several masters, one that answers is used", async () => {
      const cluster = clusterAt(server().port);
      const [node] = cluster.nodes;
      const silent = { ...node!, id: "i-2", index: 1, ssh: { ...node!.ssh, port: await freePort() } };
      const both = { ...cluster, nodes: [silent, node!] };
      expect(await run({ known: undefined, answer: async () => both })).toMatchObject({ status: 7, times: 1 });
    });

    test("an agent is no substitute for a master that has ended", async () => {
      const cluster = clusterAt(server().port);
      const [node] = cluster.nodes;
      const agent = { ...node!, id: "i-2", role: "agent" as const };
      const ended = { ...cluster, nodes: [{ ...node!, state: "ended" as const }, agent] };
      const ran = await run({ known: undefined, answer: async () => ended });
      expect(ran).toMatchObject({ status: { id: "node-not-found" }, times: 0, wasConnecting: false });
    });

    test("a node that the last record lacks is looked up in the answer", async () => {
      const known = clusterAt(server().port);
      const [node] = known.nodes;
      const grown = { ...known, nodes: [...known.nodes, { ...node!, id: "i-2", role: "agent" as const }] };
      expect(await run({ known, answer: async () => grown, node: "agent_0" })).toMatchObject({ status: 7, times: 1 });
      const missing = await run({ known, answer: async () => known, node: "agent_0" });
      expect(missing).toMatchObject({ status: { id: "node-not-found" }, wasConnecting: false });
    });

    test("a connection that fails is reported as such once the cluster is known to exist", async () => {
      const foreign = clusterAt(hold.other!.port);
      const before = await connectionsTo(hold.other!);
      const changed = await run({ known: foreign, answer: async () => foreign });
      expect(changed).toMatchObject({ status: { id: "host-key-changed" }, times: 0, wasConnecting: true });
      // One by ssh, and one to find out why it failed.
      expect((await connectionsTo(hold.other!)) - before).toBe(2);
    });

    test("a checkout is sent only to a cluster that is known to exist", async () => {
      const known = clusterAt(server().port);
      const before = await connectionsTo(server());
      const ran = await run({ known, answer: () => Promise.reject(gone), checkout: {} as Checkout });
      expect(ran).toMatchObject({ status: gone, times: 0, wasConnecting: false });
      expect(await connectionsTo(server())).toBe(before);
    });
  },
);
