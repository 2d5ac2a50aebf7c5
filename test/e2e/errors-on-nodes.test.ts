/** Errors that nodes cause, in the built executable. See errors.test.ts. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { answering, createWords, striking, testErrors, withFile } from "./support/error-cases.ts";
import type { ErrorBench, ErrorCase } from "./support/error-cases.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";
import { serveOnLoopback } from "../support/loopback-server.ts";

/** A key pair of nobody's. */
async function strangeKey(): Promise<{
  readonly privateHalf: string;
  readonly publicHalf: string;
}> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "key");
  await Bun.$`ssh-keygen -q -t ed25519 -N "" -f ${path}`;
  const [privateHalf, line] = await Promise.all([
    readFile(path, "utf8"),
    readFile(`${path}.pub`, "utf8"),
  ]);
  return { privateHalf, publicHalf: line.split(" ")[1]! };
}

/** A master without TLS whose web server answers, and which refuses the login that is tried on the master itself. */
async function refusingLogin(given: ErrorBench): Promise<AsyncDisposable> {
  const ready = "layout=cluster\nstatus=exit 0\nunit=active\ncheck.status=0\n";
  const answers = await answering(
    { pattern: "e2e-readiness", stdout: ready, readsStdin: true },
    { pattern: "e2e-superuser", stdout: "login 401\n", readsStdin: true },
  )(given);
  const address = given.base.nodes[0]!.publicAddress;
  const server = serveOnLoopback(() => new Response(""), { address, port: 80 });
  return {
    [Symbol.asyncDispose]: async () => {
      await server.stop(true);
      await answers[Symbol.asyncDispose]();
    },
  };
}

const cases: readonly ErrorCase[] = [
  {
    id: "deadline-passed",
    status: 4,
    words: ["wait", "-c", "base"],
    isLimited: true,
    prepare: answering({ pattern: "e2e-readiness", stdout: "layout=\n", readsStdin: true }),
    says: [
      "The cluster with 1 node was not ready after ",
      "master_0: not installed yet",
      "more time with --timeout",
    ],
    hasLog: true,
  },
  {
    id: "node-not-found",
    status: 3,
    words: ["run", "-c", "base", "--node", "agent_7", "true"],
    says: ['Cluster "base" has no node "agent_7"', "The cluster's nodes are master_0"],
  },
  {
    id: "trouble-noticed",
    status: 255,
    words: ["run", "-c", "base", "--watch", "--node", "master_0", "--no-test-env", "true"],
    prepare: answering(
      { pattern: "e2e-watch", stdout: "boot a 1\ncursor x\nready\nwatch 3 no quorum\nmark x\n" },
      { pattern: "true", stdout: "" },
    ),
    says: ["something went wrong on the nodes", "./watch exited with status 3: no quorum"],
    hasLog: true,
  },
  {
    id: "install-failed",
    status: 1,
    words: ["wait", "-c", "base"],
    prepare: answering({
      pattern: "e2e-readiness",
      stdout: "layout=cluster\nstatus=exit 7\nunit=failed\nlog=no such package\n",
      readsStdin: true,
    }),
    says: [
      "The installation failed on master_0: the install script exited with status 7",
      "  no such package",
      "/var/lib/cluster-e2e/install.log",
    ],
    hasLog: true,
  },
  {
    id: "upgrade-failed",
    status: 1,
    words: ["upgrade", "-c", "base", "release.sh"],
    prepare: async (given) => {
      await writeFile(join(given.cloud.folder, "release.sh"), "#!/bin/bash\n# variant: ee\n");
      const version = '{"version": "0.9"}';
      return answering(
        {
          pattern: "e2e-node-version",
          stdout: `layout=dcos\nversion=${version}\nstatus=exit 3\nunit=failed\nlog=no such package\n`,
          readsStdin: true,
        },
        { pattern: "e2e-upgrade-lock", stdout: "held\n" },
        { pattern: "head -c .* .*config\\.yaml", stdout: "bootstrap_url: http://example.org\n" },
        {
          pattern: "--generate-node-upgrade-script 0\\.9",
          stdout: "http://example.org/upgrade/node.sh\n",
        },
      )(given);
    },
    says: [
      "The upgrade failed on master_0: its upgrade script exited with status 3.",
      "  no such package",
      "Version 0.9: master_0.",
      "/var/lib/cluster-e2e/upgrade.log",
      "run the same command again: it continues with the nodes that lack 1",
    ],
    hasLog: true,
  },
  {
    id: "cluster-busy",
    status: 1,
    words: ["upgrade", "-c", "base", "release.sh"],
    prepare: async (given) => {
      await writeFile(join(given.cloud.folder, "release.sh"), "#!/bin/bash\n# variant: ee\n");
      return answering({ pattern: "e2e-upgrade-lock", status: 75, stdout: "since 12:34:56 UTC\n" })(
        given,
      );
    },
    says: [
      'Another upgrade of cluster "base" is running, since 12:34:56 UTC.',
      "Run the command again when it has ended.",
    ],
    hasLog: true,
  },
  {
    id: "configuration-refused",
    status: 1,
    words: createWords("other"),
    prepare: answering({
      pattern: "artifact\\.sh --genconf",
      status: 1,
      stdout: "resolvers: must be a list\n",
    }),
    says: ["resolvers: must be a list\n", "Change --extra-config"],
    hasLog: true,
  },
  {
    id: "not-installed",
    status: 1,
    words: ["sync", "-c", "base", "checkout"],
    says: ["The platform is not installed on master_0 yet", "cluster-cloud wait"],
    hasLog: true,
  },
  {
    id: "login-refused",
    status: 1,
    words: ["wait", "-c", "base"],
    prepare: refusingLogin,
    says: [
      'refused the login of the superuser "admin"',
      "the --superuser-username and the --superuser-password",
    ],
    hasLog: true,
  },
  {
    id: "connection-failed",
    status: 1,
    words: ["sync", "-c", "base", "checkout"],
    prepare: withFile("id_ed25519", async () => (await strangeKey()).privateHalf),
    says: [
      "master_0 (",
      "refused the login of admin",
      "cluster-cloud inspect",
      "cluster-cloud doctor",
    ],
    hasLog: true,
  },
  {
    id: "host-key-changed",
    status: 1,
    words: ["sync", "-c", "base", "checkout"],
    prepare: withFile("known_hosts", async (text) =>
      text.replace(/AAAA\S+/, (await strangeKey()).publicHalf),
    ),
    says: [
      "master_0 (",
      "a host key other than the pinned one: expected SHA256:",
      "Nothing was sent",
    ],
    hasLog: true,
  },
  {
    id: "key-missing",
    status: 5,
    words: ["sync", "-c", "base", "checkout"],
    prepare: withFile("id_ed25519", () => Promise.resolve(undefined)),
    says: ['key of cluster "base" is not on this computer', "The key belongs at "],
  },
  {
    id: "remote-command-failed",
    status: 1,
    words: ["sync", "-c", "base", "checkout"],
    prepare: answering({ pattern: "e2e-sync-state", status: 2, stderr: "Input/output error\n" }),
    says: ["Cannot find out what is installed on master_0: Input/output error", "--no-test-env"],
    hasLog: true,
  },
  {
    id: "transfer-failed",
    status: 1,
    words: ["sync", "-c", "base", "checkout"],
    prepare: answering(
      {
        pattern: "e2e-sync-state",
        stdout: '# layout cluster\n# version\n{"variant":"enterprise","version":"1"}\n# tests\n',
      },
      {
        pattern: "tar -x",
        status: 12,
        stderr: "tar: Input/output error\n",
        readsStdin: true,
      },
    ),
    says: [
      "Cannot sync the checkout to master_0: tar: Input/output error",
      "The node still has its previous files",
      "sync again",
    ],
    hasLog: true,
  },
  {
    id: "machine-failed",
    status: 1,
    words: createWords("other"),
    prepare: striking({
      action: "RunInstances",
      when: "launch",
      code: "Client.VolumeLimitExceeded",
      message: "Volume limit exceeded",
    }),
    says: ["master_0 (i-", "Volume limit exceeded", "a limit of the account"],
    hasLog: true,
  },
];

// Shows R90.
testErrors("errors that nodes give cause to", cases);
