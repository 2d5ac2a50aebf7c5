/**
 * What every backend promises, as tests of one cluster that they share. A backend's own file says how it differs, and
 * goes on with what only that backend has. The cluster has one master, and at most one public agent.
 */
import { beforeAll, expect, test } from "bun:test";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { clusterNames, makeCheckout } from "./checkout.ts";
import type { Ended, StartOptions } from "./executable.ts";
import type { InspectedNode, TestBackend } from "./test-backend.ts";

export interface Subject {
  readonly backend: () => TestBackend;
  readonly artifact: () => string;
  readonly id: () => string;
  readonly program: "cluster-cloud" | "cluster-container" | "cluster-vm";
  /** What each command that a message suggests ends with. */
  readonly suffix?: string;
  /** Options of `create`. */
  readonly options: () => readonly string[];
  readonly agents: number;
  readonly publicAgents: number;
  /** The backend's own checks, in the order of `doctor`. */
  readonly checks: string;
  /** What a dry run says. */
  readonly plan: readonly string[];
  /** What `create` says of an end and of costs; a backend without them says nothing of either. */
  readonly end?: readonly RegExp[];
  /** Names of all that the backend has of a cluster, and how many there are. */
  readonly things: (id: string) => Promise<readonly string[]>;
  readonly size: number;
}

/** A backend on this computer: how to end a node from outside, and what is then said of it. */
export interface LocalSubject extends Subject {
  readonly kill: (node: InspectedNode) => Promise<unknown>;
  readonly killed: RegExp;
}

const costs = /[Cc]ost|The cluster ends|terminate automatically|region/;
/** Differs between two boots of a container, and of a machine with its own kernel. */
const boot = "cat /proc/sys/kernel/random/boot_id; cut -d ' ' -f 22 /proc/1/stat";

export const createWords = ({ options, id, artifact }: Subject, own = id()): readonly string[] => [
  "create",
  ...options(),
  "-c",
  own,
  artifact(),
];

/** Commands for the subject's cluster. */
export function commandsOf({ backend, id, agents, publicAgents }: Subject) {
  const ask = (
    [command = "", ...words]: readonly string[],
    options?: Partial<StartOptions>,
  ): Promise<Ended> => backend().run([command, "-c", id(), ...words], options);
  const names = (role: string, count: number): readonly string[] =>
    Array.from({ length: count }, (_, index) => `${role}_${index}`);
  return {
    ask,
    /** What a shell line prints on a node. */
    on: async (node: string, line: string): Promise<string> =>
      (await ask(["run", "--no-test-env", "--node", node, line])).stdout.trim(),
    nodeOf: async (reference: string): Promise<InspectedNode> => {
      const { nodes } = await backend().inspect(id());
      return nodes.find((node) => node.reference === reference)!;
    },
    agentNames: names("agent", agents),
    nodeNames: [
      "master_0",
      ...names("agent", agents),
      ...names("public_agent", publicAgents),
    ] as const,
    sshConfig: async (): Promise<string> => {
      const path = join(backend().folder, `${id()}.ssh`);
      await Bun.write(path, (await ask(["inspect", "--output", "ssh-config"])).stdout);
      return path;
    },
    /** A job on all agents prints their host names. */
    expectJob: async (): Promise<void> => {
      const ran = await ask(["run", "srun", `-N${agents}`, "hostname"]);
      const { nodes } = await backend().inspect(id());
      const expected = await Promise.all(
        nodes
          .filter(({ role }) => role === "agent")
          .map(async ({ hostname, reference }) => {
            if (hostname !== undefined) expect(hostname).toBe(reference.replace("_", "-"));
            return (
              await backend().run(["run", "-c", id(), "--node", reference, "hostname"])
            ).stdout.trim();
          }),
      );
      expect(ran.status, ran.stderr).toBe(0);
      expect(new Set(expected).size).toBe(agents);
      expect(ran.stdout.trim().split("\n").toSorted()).toEqual(expected.toSorted());
    },
  };
}

/** Creates the cluster before all tests, so that any of them can run alone. */
export function testConformance(subject: Subject): void {
  const ended: { create?: Ended; wait?: Ended } = {};
  const { ask } = commandsOf(subject);
  beforeAll(async () => {
    ended.create = await subject.backend().run(createWords(subject));
    ended.wait = await ask(["wait", "--timeout", "14m"]);
  }, 2_400_000);
  testCreation(subject, ended as Readonly<Record<"create" | "wait", Ended>>);
  testRuns(subject);
  testInspection(subject);
  testNodes(subject);
}

function testCreation(subject: Subject, ended: Readonly<Record<"create" | "wait", Ended>>): void {
  const { backend, id, program, suffix = "", things } = subject;
  const { expectJob } = commandsOf(subject);

  // Shows R2.
  test("doctor makes the backend's own checks, and finds nothing that would stop it", async () => {
    const ran = await backend().run(["doctor", "--output", "json"]);
    const { checks } = JSON.parse(ran.stdout) as {
      readonly checks: readonly { readonly name: string; readonly status: string }[];
    };
    expect(checks.map(({ name }) => name).join(",")).toContain(subject.checks);
    expect(checks.filter(({ status }) => status === "fail")).toEqual([]);
    expect(ran.status).toBe(0);
  });

  test("a dry run says what would be made, and makes nothing", async () => {
    const ran = await backend().run([...createWords(subject, `${id()}-plan`), "--dry-run"]);
    expect(ran.status, ran.stderr).toBe(0);
    for (const text of subject.plan) expect(ran.stdout).toContain(text);
    expect(await things(`${id()}-plan`)).toEqual([]);
  });

  // Shows R3.
  test("create prints the id on stdout; on stderr it says what comes next, and when the cluster ends if it does", async () => {
    const { status, stdout, stderr } = ended.create;
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: `${id()}\n` });
    expect(stderr).toContain(`Next: ${program} wait --cluster-id ${id()}${suffix}`);
    for (const said of subject.end ?? []) expect(stderr).toMatch(said);
    if (subject.end === undefined) expect(stderr).not.toMatch(costs);
    expect(await things(id())).toHaveLength(subject.size);
  });

  // Shows R1.
  test("wait returns when the platform is ready", () => {
    expect(ended.wait, ended.wait.stderr).toMatchObject({ status: 0, stdout: "" });
  });

  // Shows R3, R64.
  test("a job runs across the agents", expectJob);

  // Shows R21.
  test("the same id again is refused, and the cluster there is unharmed", async () => {
    const before = await things(id());
    const again = await backend().run(createWords(subject));
    expect(again.status).toBe(1);
    expect(again.stderr).toContain("[cluster-exists]");
    if (subject.end === undefined)
      expect(again.stderr).toContain(`${program} destroy --cluster-id ${id()}${suffix}`);
    expect(await things(id())).toEqual(before);
  });
}

function testRuns(subject: Subject): void {
  const { backend } = subject;
  const { ask, nodeOf } = commandsOf(subject);

  // Shows R69.
  test("one word is a shell line, several words are exactly these arguments", async () => {
    expect(await ask(["run", "echo 'a' | wc -c"])).toMatchObject({ status: 0, stdout: "2\n" });
    const words = ["a b", "it's", "$HOME", "", "*", "new\nline"];
    const ran = await ask(["run", "printf", "[%s]", ...words]);
    expect(ran.stdout).toBe(words.map((word) => `[${word}]`).join(""));
  });

  // Shows R92.
  test("run passes stdin and the remote command's own status", async () => {
    expect(await ask(["run", "cat"], { stdin: "piped\n" })).toMatchObject({
      status: 0,
      stdout: "piped\n",
    });
    expect((await ask(["run", "exit 37"])).status).toBe(37);
    expect((await ask(["run", "no-such-program"])).status).toBe(127);
  });

  // Shows R4, R65, R86.
  test("run sets the test environment, and only what was asked for with --no-test-env", async () => {
    const file = join(backend().folder, "own.env");
    await Bun.write(file, "MORE=loses to --env\nFROM_FILE=two words\n");
    const login = ["--login-uname", "bob", "--login-pw", "-", "--env-file", file];
    const show =
      'pwd; printf \'%s\\n\' "$CLUSTER_LOGIN_UNAME" "$CLUSTER_LOGIN_PW" "$MORE" "$FROM_FILE" "$CLUSTER_NUM_AGENTS" "$MASTER_HOSTS"';
    const shown = async (...words: readonly string[]) =>
      (
        await ask(["run", ...words, ...login, "--env", "MORE=it's $5", show], {
          stdin: "s3cret word\n",
        })
      ).stdout.split("\n");
    const asked = ["bob", "s3cret word", "it's $5", "two words"];
    expect(await shown()).toEqual([
      "/opt/cluster/active/integration-test",
      ...asked,
      String(subject.agents + subject.publicAgents),
      (await nodeOf("master_0")).privateAddress,
      "",
    ]);
    const [folder, ...unset] = await shown("--no-test-env");
    expect(unset).toEqual([...asked, "", "", ""]);
    expect(folder).not.toContain("/opt/cluster");
  });

  test("sync sends a checkout", async () => {
    const files = { tests: { "test_it.py": "" }, library: { "own.py": "" } };
    const folder = join(backend().folder, "checkout");
    const synced = await ask(["sync", await makeCheckout(folder, "oss", files, clusterNames)]);
    expect(synced.status, synced.stderr).toBe(0);
    expect((await ask(["run", "ls"])).stdout).toContain("test_it.py");
  });
}

function testInspection(subject: Subject): void {
  const { backend, id } = subject;
  const { ask, nodeNames, nodeOf, sshConfig } = commandsOf(subject);

  // Shows R31, R33, R63, R77, R87.
  test("inspect and web show nodes, key and addresses that work from here, and ssh-config logs in", async () => {
    const cluster = await backend().inspect(id());
    expect(cluster.nodes.map(({ reference }) => reference)).toEqual([...nodeNames]);
    expect((await stat(cluster.sshKey.path)).mode & 0o777).toBe(0o600);
    expect((await fetch(cluster.webUi)).status).toBe(200);
    expect(await ask(["web"])).toMatchObject({ status: 0, stdout: `${cluster.webUi}\n` });
    const config = await sshConfig();
    for (const name of [nodeNames[0], nodeNames.at(-1)!])
      expect(await Bun.$`ssh -F ${config} ${name} echo in`.nothrow().text()).toBe("in\n");
  });

  // Shows R62.
  test("list shows the cluster", async () => {
    expect((await backend().run(["list", "--quiet"])).stdout.split("\n")).toContain(id());
    const listed = await backend().run(["list", "--output", "json", "-vvv"]);
    const { agents, publicAgents } = subject;
    expect(JSON.parse(listed.stdout)).toMatchObject({
      schemaVersion: 1,
      clusters: expect.arrayContaining([
        expect.objectContaining({ id: id(), counts: { masters: 1, agents, publicAgents } }),
      ]),
    });
  });

  // Shows R32, R68.
  test("a node is found by each of its names, and an unknown one ends with 3", async () => {
    const { reference, id: machine, ...addresses } = await nodeOf(nodeNames.at(-1)!);
    const names = [reference, machine, addresses.publicAddress, addresses.privateAddress];
    const ran = await Promise.all(
      names
        .filter((name) => name !== undefined)
        .map((name) => ask(["run", "--no-test-env", "--node", name, "hostname"])),
    );
    expect(new Set(ran.map(({ stdout }) => stdout)).size).toBe(1);
    expect(ran[0]!.stdout).not.toBe("");
    const unknown = await ask(["run", "--node", "agent_7", "hostname"]);
    expect(unknown).toMatchObject({ status: 3, stdout: "" });
    expect(unknown.stderr).toContain(nodeNames.join(", "));
  });
}

function testNodes(subject: Subject): void {
  const { backend, id } = subject;
  const { ask, expectJob, nodeNames, on } = commandsOf(subject);
  const [master] = nodeNames;

  // Shows R92, R125.
  test("each node has a host key of its own, and one that was never seen is refused with 255", async () => {
    const keys = await Promise.all(
      [master, nodeNames.at(-1)!].map((name) => on(name, "cat /etc/ssh/ssh_host_*_key.pub")),
    );
    const [own, other] = keys.map((key) => /^ssh-ed25519 (\S+)[^\n]*$/.exec(key)![1]!);
    expect(own).not.toBe(other!);
    const { sshKey } = await backend().inspect(id());
    const knownHosts = sshKey.path.replace(/id_ed25519$/, "known_hosts");
    const pinned = await Bun.file(knownHosts).text();
    expect(pinned).toContain(own!);
    await Bun.write(knownHosts, pinned.replaceAll(own!, other!));
    const refused = await ask(["run", "hostname"]);
    await Bun.write(knownHosts, pinned);
    expect(refused).toMatchObject({ status: 255, stdout: "" });
    expect(refused.stderr).toContain("master_0 (");
    expect(refused.stderr).not.toMatch(/ssh-keygen|REMOTE HOST IDENTIFICATION/);
    expect(refused.stderr).toEndWith("\n[host-key-changed]\n");
    expect((await ask(["run", "true"])).status).toBe(0);
  });

  test("a restarted node comes back with its addresses and its host key, and the platform is ready again", async () => {
    const agent = `agent_${subject.agents - 1}`;
    const [before, booted] = [await backend().inspect(id()), await on(agent, boot)];
    expect(await ask(["node", "restart", agent])).toMatchObject({ status: 0, stdout: "" });
    const again = await ask(["run", "--no-test-env", "--node", agent, boot]);
    expect(again.status, again.stderr).toBe(0);
    expect(again.stdout.trim()).not.toBe(booted);
    expect((await backend().inspect(id())).nodes).toEqual([...before.nodes]);
    expect(await ask(["wait", "--timeout", "14m"])).toMatchObject({ status: 0, stdout: "" });
    await expectJob();
  });
}

/** Leaves the cluster without the first agent. */
export function testKilledNode(subject: LocalSubject): void {
  const { backend, id, agents, publicAgents, kill, killed } = subject;
  const { ask, nodeOf } = commandsOf(subject);

  test("a node that was killed is reported at once by wait, run and list, and logs has its console", async () => {
    const agent = await nodeOf("agent_0");
    await kill(agent);
    const waited = await ask(["wait"]);
    expect(waited.status).toBe(1);
    expect(waited.stderr).toContain(`agent_0 (${agent.id}) is stopped: `);
    expect(waited.stderr).toMatch(killed);
    expect(waited.stderr).toContain("[machine-failed]");
    const ran = await ask(["run", "--node", "agent_0", "true"]);
    expect(ran.status).toBe(255);
    expect(ran.stderr).toContain("[node-stopped]");
    // The last column is there while a cluster has a lifetime.
    expect((await backend().run(["list"])).stdout).toMatch(
      new RegExp(
        `^${id()} +incomplete +oss +1 +${agents} +${publicAgents} +\\d+ \\w+( +\\S.*)?$`,
        "m",
      ),
    );
    const logs = join(backend().folder, "logs");
    expect((await ask(["logs", "--output-dir", logs])).status).toBe(0);
    expect(await Bun.file(join(logs, "agent_0.console.txt")).exists()).toBe(true);
  });
}

/** Removes the cluster. */
export function testRemoval(subject: LocalSubject): void {
  const { things, id } = subject;
  const { ask } = commandsOf(subject);

  // Shows R40.
  test("destroy removes everything, and a second time there is no such cluster", async () => {
    const destroyed = await ask(["destroy", "--yes"]);
    expect(destroyed, destroyed.stderr).toMatchObject({ status: 0, stdout: `${id()}\n` });
    expect(await things(id())).toEqual([]);
    expect(await ask(["destroy"])).toMatchObject({ status: 3, stdout: "" });
  });
}
