/** Sessions that share a login: what they print and how they end is the same as with a login of their own. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, openSync, readFileSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { clusterMasterConnection } from "../../../../src/cluster/connections.ts";
import { renderSshConfig, createKnownHosts } from "../../../../src/ssh/openssh-files.ts";
import { createConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import {
  closeMasterConnections,
  hasMasterConnection,
  type MasterConnection,
} from "../../../../src/ssh/session/master-connection.ts";
import { startSession } from "../../../../src/ssh/session/session.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { argumentLists } from "../../../support/argument-lists.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  opensshLack,
  type OpensshServer,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { destinationOf, signal, wireKey } from "../../../support/ssh-options.ts";
import { until } from "../../../support/until.ts";

interface Node extends AsyncDisposable {
  readonly server: OpensshServer;
  readonly directory: string;
  readonly master: () => Promise<MasterConnection | undefined>;
  readonly run: (words: string, abort?: AbortSignal) => Promise<Outcome>;
  /** Logins with ssh so far, each of which sshd writes down. */
  readonly logins: () => Promise<number>;
  /** Runs a command, and waits until the connection that it leaves is open. */
  readonly warm: () => Promise<void>;
}

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The folder's path is longer than that of a socket may be. */
async function startNode(
  settings: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Node> {
  const [server, scratch] = await Promise.all([startOpensshServer(settings), scratchFolder()]);
  const directory = join(scratch.path, "long".repeat(30));
  const files = creationFiles(directory);
  await mkdir(directory);
  await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
  const pin = async (): Promise<void> =>
    createKnownHosts(files.knownHosts).pin(
      "127.0.0.1",
      server.port,
      wireKey(server.firstHostKey.publicKey),
    );
  await pin();
  const sshConfig = renderSshConfig([destinationOf(server)], {
    identityFile: files.privateKey,
    knownHostsFile: files.knownHosts,
  });
  await writeFile(files.sshConfig, sshConfig);
  const master = (): Promise<MasterConnection | undefined> =>
    clusterMasterConnection({ directory }, destinationOf(server), environment);
  const run = async (words: string, abort: AbortSignal = signal): Promise<Outcome> => {
    const folder = join(scratch.path, crypto.randomUUID());
    await Bun.write(join(folder, "stdin"), "from stdin\n");
    const paths = ["stdin", "stdout", "stderr"].map((name) => join(folder, name));
    const [stdin, stdout, stderr] = paths.map((path, index) =>
      openSync(path, index === 0 ? "r" : "w"),
    );
    await using pool = createConnectionPool({
      privateKeyFile: files.privateKey,
      knownHosts: createKnownHosts(files.knownHosts),
      clock: systemClock,
      progress: silentProgress,
    });
    const session = startSession(
      {
        sshConfigFile: files.sshConfig,
        host: "master_0",
        loginUser: "root",
        sudo: true,
        script: {
          settings: [
            {
              whenExists: undefined,
              environmentFile: undefined,
              variables: { SECRET: "hush-hush" },
              workingDirectory: undefined,
            },
          ],
          words: [words],
          missingFolderHint: "",
        },
        terminal: false,
        stdio: [stdin!, stdout!, stderr!],
        environment: { ...environment, CLOUD_SECRET_ACCESS_KEY: "hush-hush" },
        master: await master(),
        connect: (inner) => pool.connect(destinationOf(server), inner),
      },
      abort,
    );
    const status = await (await session.end).report(abort);
    return {
      status,
      stdout: readFileSync(paths[1]!, "utf8"),
      stderr: readFileSync(paths[2]!, "utf8"),
    };
  };
  return {
    server,
    directory,
    master,
    run,
    logins: async () => (await server.log()).split("Accepted publickey").length - 1,
    warm: async () => {
      expect(await run("true")).toEqual({ status: 0, stdout: "", stderr: "" });
      await until("the connection is open", () => hasMasterConnection(directory, process.env));
    },
    [Symbol.asyncDispose]: async () => {
      await closeMasterConnections(directory, process.env);
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const socketsOf = async ({ directory }: Node): Promise<readonly string[]> =>
  (await readdir(directory)).filter((name) => name.startsWith("master-"));

describe.skipIf(opensshLack !== undefined)(
  `sessions over a shared login (${opensshLack ?? "here"})`,
  () => {
    const hold: { node?: Node } = {};
    const node = (): Node => hold.node!;

    beforeAll(async () => {
      hold.node = await startNode([]);
    });
    // Some of the tests end the connection.
    beforeEach(async () => node().warm());
    afterAll(async () => node()[Symbol.asyncDispose]());

    test.each([
      ["exit 0", 0],
      ["exit 37", 37],
      ["echo said >&2; exit 255", 255],
      ["(exit 143)", 143],
      ["kill -9 $$", 137],
    ])("%j needs no login, and ends with %d", async (words, status) => {
      const before = await node().logins();
      const stderr = status === 255 ? "said\n" : "";
      expect(await node().run(words)).toEqual({ status, stdout: "", stderr });
      // The node says that 255 is the command's own status.
      expect(await node().logins()).toBe(before);
    });

    test("two commands at a time each have their own streams and variables", async () => {
      const both = await Promise.all([
        node().run('cat; echo "$SECRET"'),
        node().run("cat; echo err >&2; exit 3"),
      ]);
      expect(both).toEqual([
        { status: 0, stdout: "from stdin\nhush-hush\n", stderr: "" },
        { status: 3, stdout: "from stdin\n", stderr: "err\n" },
      ]);
    });

    test("the background process has none of our streams, no secret, and its own session", async () => {
      const pid = await masterPid(node());
      const streams = [0, 1, 2].map((fd) =>
        Bun.spawnSync(["readlink", `/proc/${pid}/fd/${fd}`])
          .stdout.toString()
          .trim(),
      );
      expect(streams).toEqual(["/dev/null", "/dev/null", "/dev/null"]);
      for (const name of ["cmdline", "environ"])
        expect(readFileSync(`/proc/${pid}/${name}`, "utf8")).not.toContain("hush");
      expect(
        Bun.spawnSync(["ps", "-o", "sid=", "-p", String(pid)])
          .stdout.toString()
          .trim(),
      ).not.toBe(
        Bun.spawnSync(["ps", "-o", "sid=", "-p", String(process.pid)])
          .stdout.toString()
          .trim(),
      );
    });

    test("an interrupt ends the command on the node and leaves the connection open", async () => {
      const pid = await masterPid(node());
      const abort = new AbortController();
      const running = failureOf(node().run("sleep 73 & sleep 73", abort.signal));
      const isSleeper = (list: string): boolean =>
        list.split("\0").join(" ").startsWith("sleep 73");
      await until("the sleepers run", () => argumentLists().some(isSleeper));
      abort.abort(new Error("interrupted"));
      expect((await running).message).toBe("interrupted");
      await until("the sleepers have ended", () => !argumentLists().some(isSleeper));
      expect(await node().run("echo on")).toEqual({ status: 0, stdout: "on\n", stderr: "" });
      expect(await masterPid(node())).toBe(pid);
    });

    test("a connection that ends during a command is reported", async () => {
      // The command goes on until the file is gone.
      const file = join(node().directory, "running");
      const running = failureOf(
        node().run(`touch ${file}; while [ -e ${file} ]; do sleep 0.02; done`),
      );
      await until("the command runs", () => existsSync(file));
      process.kill(await masterPid(node()), "SIGKILL");
      expect(await running).toMatchObject({
        id: "connection-failed",
        facts: { node: "master_0" },
        message: expect.stringContaining("not known"),
      });
      await rm(file);
      await node().warm();
    });

    // Shows R92, R125.
    test("another pinned key is refused although a connection is open", async () => {
      const { knownHosts } = creationFiles(node().directory);
      const pinned = await Bun.file(knownHosts).text();
      await writeFile(
        knownHosts,
        `[127.0.0.1]:${node().server.port} ${generateKeyPair("other").publicKey}\n`,
      );
      expect(await failureOf(node().run("true"))).toMatchObject({ id: "host-key-changed" });
      await writeFile(knownHosts, pinned);
      expect((await node().run("true")).status).toBe(0);
    });

    test("a socket that a killed process left is no obstacle, and is used again", async () => {
      process.kill(await masterPid(node()), "SIGKILL");
      expect(await socketsOf(node())).toHaveLength(1);
      await node().warm();
    });

    test("without ssh, no connection counts as open", async () => {
      expect(await hasMasterConnection(node().directory, { PATH: "/nowhere" })).toBe(false);
    });

    test("removing the cluster closes the connection and leaves no socket", async () => {
      const pid = await masterPid(node());
      await closeMasterConnections(node().directory, process.env);
      await until(
        "the process has ended",
        () => !argumentLists().some((list) => list.includes("[mux]") && isAlive(pid)),
      );
      expect(await socketsOf(node())).toEqual([]);
      await closeMasterConnections(join(node().directory, "no such folder"), process.env);
    });
  },
);

describe.skipIf(opensshLack !== undefined)(
  `a node that allows one session (${opensshLack ?? "here"})`,
  () => {
    test("runs a second command over a login of its own, silently", async () => {
      await using node = await startNode(["MaxSessions 1"]);
      await node.warm();
      const first = node.run("cat; sleep 1; echo first");
      await until("the first runs", () =>
        argumentLists().some((list) => list.startsWith("sleep\u00001\u0000")),
      );
      expect(await node.run("echo second")).toEqual({ status: 0, stdout: "second\n", stderr: "" });
      expect(await first).toEqual({ status: 0, stdout: "from stdin\nfirst\n", stderr: "" });
    });

    test("a listener that doesn't speak ssh's protocol only delays the command", async () => {
      await using node = await startNode([]);
      const name = /ControlPath=\.\/(.*)/
        .exec((await node.master())!.options.join(" "))![1]!
        .split(" ")[0]!;
      const server = createServer((socket) => socket.destroy());
      const before = process.cwd();
      process.chdir(node.directory);
      await new Promise<void>((resolve) => server.listen(name, resolve));
      process.chdir(before);
      expect(await node.run("echo by itself")).toEqual({
        status: 0,
        stdout: "by itself\n",
        stderr: "",
      });
      server.close();
    });
  },
);

/** As ssh does in a folder whose file system has no sockets. It notes that it was asked to share its login. */
const withoutSockets = (asked: string): string => `#!/bin/sh
case " $* " in *ControlMaster=auto*)
  echo asked >>${asked}
  echo 'muxserver_listen bind(): Operation not permitted' >&2
  exit 255 ;;
esac
exec ${Bun.which("ssh")} "$@"
`;

test.skipIf(opensshLack !== undefined)(
  `where ssh can't share a login, each session has its own (${opensshLack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    const asked = join(folder.path, "asked");
    await writeFile(join(folder.path, "ssh"), withoutSockets(asked), { mode: 0o755 });
    const PATH = `${folder.path}:${process.env["PATH"]}`;
    await using node = await startNode([], { ...process.env, PATH });
    for (const count of [1, 2]) {
      expect(await node.run("echo here; exit 3")).toEqual({
        status: 3,
        stdout: "here\n",
        stderr: "",
      });
      expect(await node.logins()).toBe(count);
      await until("it was asked", async () => {
        const lines = await Bun.file(asked)
          .text()
          .catch(() => "");
        return lines.split("\n").length > count;
      });
    }
    expect(await socketsOf(node)).toEqual([]);
    expect(await hasMasterConnection(node.directory, process.env)).toBe(false);
  },
);

async function masterPid({ directory }: Node): Promise<number> {
  const [name] = await readdir(directory).then((names) =>
    names.filter((each) => each.startsWith("master-")),
  );
  const argv = ["ssh", "-F", "/dev/null", "-S", `./${name}`, "-O", "check", "master"];
  const { stderr } = Bun.spawnSync(argv, { cwd: directory, stdout: "pipe", stderr: "pipe" });
  return Number(/pid=(\d+)/.exec(stderr.toString())?.[1]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
