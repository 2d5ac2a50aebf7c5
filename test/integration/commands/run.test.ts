/** `run` with a real sshd, on which no platform is installed. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { type Clock, systemClock } from "../../../src/system/runtime.ts";
import { closeMasterConnections } from "../../../src/ssh/session/master-connection.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { failureOf } from "../../support/failure-of.ts";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";

async function openNode(settings: readonly string[] = []) {
  const [server, scratch] = await Promise.all([startOpensshServer(settings), scratchFolder()]);
  const creationId = "0123456789abcdef";
  const directory = join(scratch.path, "cluster-e2e", "container", `example-${creationId}`);
  await makeFolderFor(server, directory);
  const master = {
    id: "one",
    role: "master",
    index: 0,
    state: "running",
    ssh: { host: "127.0.0.1", port: server.port, user: "root" },
    web: { host: "127.0.0.1", httpPort: 80, httpsPort: 443 },
  };
  const stopped = { ...master, id: "two", role: "agent", state: "stopped" };
  const cluster = {
    ...exampleCluster([master, stopped] as NodeRecord[], "oss"),
    creationId,
    directory,
    backend: "container" as const,
    requested: { master: 1, agent: 1, public_agent: 0 },
  };
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: scratch.path,
    XDG_STATE_HOME: scratch.path,
  };
  const findElsewhere = async () => ({ scopes: [], unreachable: [] });
  const scope = { kind: "engine", name: "podman", option: "engine", findElsewhere };
  const left = { nodes: 2, after: 0 };
  const find = async () => {
    const count = left.after > 0 ? cluster.nodes.length : left.nodes;
    left.after -= 1;
    return { ...cluster, nodes: cluster.nodes.slice(0, count) };
  };
  return {
    folder: scratch.path,
    /** After the cluster was found so many times, it has only so many nodes. */
    leaveNodes: (nodes: number, after: number): void => void Object.assign(left, { nodes, after }),
    run: async (words: string, clock?: Clock, command = "run") =>
      runCommandLine(`${command} -c example ${words}`, {
        ...(clock !== undefined && { clock }),
        kind: containerKind,
        backend: { name: "container", find, scope },
        nowMs: 0,
        cwd: scratch.path,
        environment,
      }),
    [Symbol.asyncDispose]: async () => {
      await closeMasterConnections(directory, environment);
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(opensshLack !== undefined)(`run (${opensshLack ?? "here"})`, () => {
  test("passes variables to the command, and ends with its status", async () => {
    await using node = await openNode();
    await writeFile(join(node.folder, "own.env"), "A=from the file\nB=from the file\n");
    await writeFile(join(node.folder, "show"), '#!/bin/sh\necho "$A, $B" >"$1"\nexit 7\n', {
      mode: 0o755,
    });
    const [program, shown] = [join(node.folder, "show"), join(node.folder, "shown")];
    const { status, failureExitCode } = await node.run(
      `--no-test-env --env-file own.env --env B=given ${program} ${shown}`,
    );
    expect(await readFile(shown, "utf8")).toBe("from the file, given\n");
    // Only a failure of ours ends with 255.
    expect({ status, failureExitCode }).toEqual({ status: 7, failureExitCode: undefined });
  });

  test("on several nodes notes each failure, or has them in its JSON, and ends with the highest status", async () => {
    await using node = await openNode();
    const { status, told } = await node.run("--no-test-env --node all false");
    expect([status, told[0]]).toEqual([255, "master_0: exited with status 1"]);
    expect(told[1]).toStartWith("agent_0: ");
    expect(told[1]).not.toContain("255");
    const hint = expect.stringContaining("node start agent_0");
    expect(told.slice(2)).toEqual([hint]);
    const json = await node.run("--no-test-env --node all --output json false");
    expect(json).toMatchObject({
      status: 255,
      told: [],
      data: { nodes: [{ status: 1 }, { error: { id: "node-stopped", hint } }] },
    });
    expect(json.data).not.toHaveProperty("nodes.0.error");
    expect((await node.run("--no-test-env --node master_0 --node agent_0 true")).told).toEqual(
      told.slice(1),
    );
    expect(await node.run("--no-test-env --node masters true")).toMatchObject({
      status: 0,
      told: [],
    });
  });

  test("needs the platform for the tests' environment", async () => {
    await using node = await openNode();
    expect((await node.run("true")).status).not.toBe(0);
    expect(await node.run("--no-test-env true")).toMatchObject({ status: 0 });
  });

  test("runs the command here with --local, with variables that name the cluster", async () => {
    await using node = await openNode();
    const script = `#!/bin/sh
cat >"$1" <<END
$PWD
$CLUSTER_ID $CLUSTER_ENGINE $CLUSTER_PROGRAM $OWN $CLUSTER_LOGIN_UNAME
$CLUSTER_MASTERS|$CLUSTER_AGENTS|$CLUSTER_PUBLIC_AGENTS
$(ssh -F "$CLUSTER_SSH_CONFIG" master_0 echo logged in)
END
cat "$CLUSTER_JSON" >>"$1"
exit 7
`;
    await writeFile(join(node.folder, "show"), script, { mode: 0o755 });
    const { status, failureExitCode } = await node.run(
      "--local --env OWN=value --login-uname me ./show shown",
    );
    expect({ status, failureExitCode }).toEqual({ status: 7, failureExitCode: undefined });
    const shown = await readFile(join(node.folder, "shown"), "utf8");
    const [folder, facts, addresses, login, ...json] = shown.split("\n");
    // The node is reached at a port of this computer, so it has no address of its own.
    expect([folder, facts, addresses, login]).toEqual([
      node.folder,
      "example podman /usr/local/bin/cluster-container value me",
      "master_0|agent_0|",
      "logged in",
    ]);
    expect(JSON.parse(json.join("\n"))).toMatchObject({
      schemaVersion: 1,
      cluster: { id: "example", nodes: [{ reference: "master_0" }, { reference: "agent_0" }] },
    });
  });

  test("a command line of one word is the shell's with --local, too", async () => {
    await using node = await openNode();
    expect((await node.run("--local false")).status).toBe(1);
    expect((await node.run("--local /no/such/program -x")).status).toBe(127);
  });

  test.each(["--no-test-env", "--local"])(
    "repeats the command with --until (%s), and prints only its last output",
    async (place) => {
      await using node = await openNode();
      const script = '#!/bin/sh\necho x >>"$1"; wc -l <"$1"; [ $(wc -l <"$1") -ge "$2" ]\n';
      await writeFile(join(node.folder, "again"), script, { mode: 0o755 });
      const again = `${place} --until 3s ${join(node.folder, "again")}`;
      const { clock, pauses } = pacedClock();
      const good = await node.run(`${again} ${join(node.folder, "good")} 3`, clock);
      expect([good.status, good.lines, pauses]).toEqual([0, ["3"], [1_000, 1_000]]);
      const bad = await node.run(`${again} ${join(node.folder, "bad")} 9`, pacedClock().clock);
      expect([bad.status, bad.lines]).toEqual([1, ["4"]]);
      const fails = await node.run(`--fails ${again} ${join(node.folder, "bad")} 0`, clock);
      expect([fails.status, fails.lines]).toEqual([1, ["8"]]);
    },
  );

  test("a command that doesn't end in time is ended with --until", async () => {
    await using node = await openNode();
    const error = await failureOf(node.run("--no-test-env --until 200ms sleep 60"));
    expect(error.id).toBe("deadline-passed");
  });

  test("with --until, a node that is gone has not succeeded", async () => {
    await using node = await openNode();
    node.leaveNodes(1, 1);
    const words = "--no-test-env --until 3s --node all true";
    const error = await failureOf(node.run(words, pacedClock().clock));
    expect([error.id, error.message]).toEqual([
      "node-not-found",
      'Cluster "example" has no node "agent_0".',
    ]);
  });

  test("a node of a group that is gone is named, because nothing is run there or copied from it", async () => {
    await using node = await openNode();
    await writeFile(join(node.folder, "one"), "1");
    const warning = "Warning: left out, because no machine of that name is left: agent_0";
    for (const [words, command] of [
      ["--no-test-env --node all true", "run"],
      [`all:${join(node.folder, "one")} copies/`, "cp"],
    ] as const) {
      node.leaveNodes(1, 0);
      const { status, told } = await node.run(words, undefined, command);
      expect({ status, told }).toEqual({ status: 0, told: [warning] });
    }
    expect((await node.run("--no-test-env --node masters true")).told).toEqual([]);
  });

  test("a command that shall fail turns statuses round with --fails, but not failures of ours", async () => {
    await using node = await openNode();
    const statuses: number[] = [];
    for (const words of ["false", "true", "--node all false", "--node all true", "--local false"])
      statuses.push(
        (
          await node.run(
            `--no-test-env --fails ${words}`.replace(
              "--no-test-env --fails --local",
              "--fails --local",
            ),
          )
        ).status,
      );
    // The agent is stopped, which is an error of its own.
    expect(statuses).toEqual([0, 1, 255, 255, 0]);
    expect((await node.run("--no-test-env --fails --node masters false")).status).toBe(0);
  });

  test("with --fails, a file that can't be fetched is an error if the command has failed as it shall", async () => {
    await using node = await openNode();
    const words = (end: string) => `--no-test-env --fails --fetch /no/such:here ${end}`;
    expect((await failureOf(node.run(words("false")))).id).toBe("transfer-failed");
    expect((await node.run(words("--node masters false"))).status).toBe(255);
    const unwanted = await node.run(words("true"));
    expect(unwanted.status).toBe(1);
    // On a slow computer, there are others.
    const fetched = expect.stringContaining("Warning: Cannot fetch /no/such");
    expect(unwanted.told).toEqual(expect.arrayContaining([fetched, "The command succeeded."]));
  });

  test("runs the command as another user, and says if that one has no home directory", async () => {
    await using node = await openNode();
    const asUser = async (name: string, words: string) => {
      const { data } = await node.run(`--no-test-env --output json --user ${name} ${words}`);
      return (data as { readonly nodes: readonly unknown[] }).nodes[0];
    };
    const { stdout } = (await asUser("daemon", "env")) as { readonly stdout: string };
    for (const line of ["HOME=/usr/sbin", "PWD=/usr/sbin", "USER=daemon", "LOGNAME=daemon"])
      expect(stdout).toContain(line);
    expect(stdout).not.toContain("MAIL=");
    const users = (await readFile("/etc/passwd", "utf8"))
      .split("\n")
      .map((line) => line.split(":"));
    const [name = "", , , , , home = ""] = users.find(
      ([, , , , , path = "/"]) => !existsSync(path),
    )!;
    expect(await asUser(name, "env")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/HOME=\/(?!\w)/),
      stderr: expect.stringContaining(
        `The user ${name} has no home directory: ${home} does not exist on this node. HOME is / instead.`,
      ),
    });
    expect(await asUser("no-such-user", "true")).toMatchObject({
      status: 255,
      stderr: expect.stringContaining("There is no user no-such-user on this node."),
    });
  });

  test("cp copies files to nodes and back, for each node of a group into a folder", async () => {
    await using node = await openNode();
    const cp = async (words: string) => node.run(words, undefined, "cp");
    await writeFile(join(node.folder, "one"), "1");
    await writeFile(join(node.folder, "two"), "22");
    const remote = join(node.folder, "node");
    const { data } = await cp(`one two masters:${remote}/`);
    expect(data).toEqual({ nodes: [{ reference: "master_0", files: 2, bytes: 3 }] });
    await cp(`one master-0:${remote}/new`);
    await cp(`masters:${remote}/new masters:${remote}/two logs/`);
    await cp(`master_0:${remote}/two back`);
    expect(await readFile(join(node.folder, "logs/master_0/new"), "utf8")).toBe("1");
    expect(await readFile(join(node.folder, "logs/master_0/two"), "utf8")).toBe("22");
    expect(await readFile(join(node.folder, "back"), "utf8")).toBe("22");
    // The agent is stopped, which doesn't keep the file from the master.
    const failure = await failureOf(cp(`two all:${remote}/all`));
    expect(failure.id).toBe("node-stopped");
    expect(await readFile(join(remote, "all"), "utf8")).toBe("22");
    for (const words of [
      "one",
      "one two",
      "master_0:/etc/hosts master_0:/tmp/x",
      "master_0:/a one master_0:/b",
    ])
      expect((await failureOf(cp(words))).id).toBe("bad-usage");
  });

  test("cp keeps the permissions of new folders on nodes, and of folders that are there", async () => {
    await using node = await openNode();
    const at = (path: string): string => join(node.folder, path);
    const modeOf = async (path: string) => ((await stat(at(path))).mode & 0o777).toString(8);
    await mkdir(at("own/private/inner"), { recursive: true });
    for (const path of ["own", "own/private", "own/private/inner"]) await chmod(at(path), 0o700);
    await writeFile(at("own/private/inner/key"), "k");
    await mkdir(at("node/there/private"), { recursive: true });
    await chmod(at("node/there/private"), 0o751);
    const { data } = await node.run(`own master_0:${at("node")}/`, undefined, "cp");
    expect(data).toEqual({ nodes: [{ reference: "master_0", files: 1, bytes: 1 }] });
    await node.run(`own master_0:${at("node/there")}`, undefined, "cp");
    const modes = ["own", "own/private", "own/private/inner", "there", "there/private"].map(
      async (path) => modeOf(`node/${path}`),
    );
    expect(await Promise.all(modes)).toEqual(["700", "700", "700", "755", "751"]);
    expect(await readFile(at("node/there/private/inner/key"), "utf8")).toBe("k");
  });

  test("cp names a file that became shorter while it was fetched", async () => {
    await using bin = await scratchFolder();
    // Between tar's look at the size and its reading.
    const tar =
      '#!/bin/sh\necho "tar: ./log: File shrank by 9 bytes; padding with zeros" >&2\n/bin/tar "$@"; exit 1\n';
    await writeFile(join(bin.path, "tar"), tar, { mode: 0o755 });
    await using node = await openNode([
      `SetEnv HOME=${bin.path} PATH=${bin.path}:/usr/sbin:/usr/bin:/sbin:/bin`,
    ]);
    await writeFile(join(node.folder, "log"), "short");
    const { told } = await node.run(`master_0:${node.folder}/log back`, undefined, "cp");
    expect(told.join(" ")).toContain(": became shorter while it was fetched from");
  });

  test("inspect writes the nodes for other programs, whose ssh checks the pinned key", async () => {
    await using node = await openNode();
    const as = async (format: string) =>
      (await node.run(`--output ${format}`, undefined, "inspect")).stdout;
    // It is reached at a port of this computer only.
    expect(await as("addresses")).toBe("master_0");
    expect(await as("hosts")).toStartWith("# master-0: ");
    const inventory = Bun.YAML.parse(await as("ansible")) as {
      readonly all: {
        readonly vars: Record<string, string>;
        readonly children: Record<string, { readonly hosts: Record<string, object> | null }>;
      };
    };
    const { vars, children } = inventory.all;
    expect(Object.keys(children)).toEqual(["masters", "agents", "public_agents"]);
    const { ansible_port: port } = children["masters"]!.hosts!["master_0"] as {
      ansible_port: number;
    };
    // A user's own configuration may have a jump host for all others.
    const config = join(node.folder, "own_config");
    await writeFile(config, "Host *\n  ProxyJump bastion.invalid\n");
    const ssh = `ssh -F ${config} ${vars["ansible_ssh_common_args"]} -p ${port} root@127.0.0.1 echo in`;
    expect(await Bun.$`sh -c ${ssh}`.text()).toBe("in\n");
    const line =
      'ssh -F "$CLUSTER_SSH_CONFIG" "master-0.$CLUSTER_ID" echo "in $CLUSTER_ENGINE"; cat "$CLUSTER_JSON"';
    const shown = await Bun.$`sh -c ${`${await as("env")}\n${line}`}`.text();
    expect(shown).toStartWith('in podman\n{\n  "schemaVersion": 1,');
  });
});

/** Only pauses between attempts pass at once: how long a command takes is no matter of the script. */
function pacedClock(): { readonly clock: Clock; readonly pauses: readonly number[] } {
  const scripted = scriptedClock();
  const sleep: Clock["sleep"] = async (ms, signal) =>
    ms === 1_000 ? scripted.sleep(ms, signal) : systemClock.sleep(ms, signal);
  return { clock: { now: scripted.now, sleep }, pauses: scripted.pauses };
}
