/** The main flow on real machines: an open source cluster, from its creation to a job across its agents. */
import { beforeAll, expect, test } from "bun:test";
import { stat } from "node:fs/promises";
import type { Ended } from "./support/executable.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { bareNodeImage } from "./support/container-engine.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { Inspected, InspectedNode } from "./support/test-cloud.ts";

const { backend: cloud, artifact } = shareBackend(async () =>
  startTestCloud("container", bareNodeImage),
);

const createWords = () => [
  "create",
  "--variant",
  "oss",
  "--linux-distribution",
  "debian-12",
  "--agents",
  "2",
  artifact(),
];

const ended: { create?: Ended; wait?: Ended } = {};

/** All tests share one cluster, so that any of them can run alone. */
beforeAll(async () => {
  ended.create = await cloud().run(createWords());
  ended.wait = await cloud().run(["wait", "--timeout", "14m"]);
});

// Shows R3.
test("create prints the id on stdout, and what it did and what comes next on stderr", () => {
  const created = ended.create!;
  expect(created.stderr).toContain("Next: cluster-cloud wait --cluster-id default");
  expect(created.stderr).toMatch(/The cluster ends .*\d\d:\d\d UTC \(in 1 h 5\d min\)/);
  expect(created.stderr).toContain("The cost is at most $");
  expect({ status: created.status, stdout: created.stdout }).toEqual({
    status: 0,
    stdout: "default\n",
  });
});

// Shows R1.
test("wait returns when the platform is ready", () => {
  expect(ended.wait).toMatchObject({ status: 0, stdout: "" });
});

// Shows R21.
test("the same id again is refused, and the cluster there is unharmed", async () => {
  const before = await cloud().machines();
  const again = await cloud().run(createWords());
  expect(again.status).toBe(1);
  expect(again.stderr).toContain("[cluster-exists]");
  expect(await cloud().machines()).toEqual([...before]);
});

// Shows R3, R64.
test("a job runs across the agents", async () => {
  const ran = await cloud().run(["run", "srun", "-N2", "hostname"]);
  expect(ran.status).toBe(0);
  const names = ran.stdout.trim().split("\n");
  expect(new Set(names).size).toBe(2);
  const agents = await Promise.all(
    [0, 1].map((index) => cloud().run(["run", "--node", `agent_${index}`, "hostname"])),
  );
  expect(names.toSorted()).toEqual(agents.map(({ stdout }) => stdout.trim()).toSorted());
});

// Shows R69.
test("one word is a shell line, several words are exactly these arguments", async () => {
  expect(await cloud().run(["run", "echo 'a' | wc -c"])).toMatchObject({
    status: 0,
    stdout: "2\n",
  });
  const words = ["a b", "it's", "$HOME", "", "*", "new\nline"];
  const ran = await cloud().run(["run", "printf", "[%s]", ...words]);
  expect(ran.stdout).toBe(words.map((word) => `[${word}]`).join(""));
});

// Shows R92.
test("run passes stdin and the remote command's own status", async () => {
  expect(await cloud().run(["run", "cat"], { stdin: "piped\n" })).toMatchObject({
    status: 0,
    stdout: "piped\n",
  });
  expect((await cloud().run(["run", "exit 37"])).status).toBe(37);
  expect((await cloud().run(["run", "no-such-program"])).status).toBe(127);
});

// Shows R4, R65, R86.
test("run sets the test environment, and only what was asked for with --no-test-env", async () => {
  const file = `${cloud().folder}/own.env`;
  await Bun.write(file, "MORE=loses to --env\nFROM_FILE=two words\n");
  const login = [
    "--login-uname",
    "bob",
    "--login-pw",
    "-",
    "--env-file",
    file,
    "--env",
    "MORE=it's $5",
  ];
  const show =
    'pwd; printf \'%s\\n\' "$CLUSTER_LOGIN_UNAME" "$CLUSTER_LOGIN_PW" "$MORE" "$FROM_FILE" "$CLUSTER_NUM_AGENTS" "$MASTER_HOSTS"';
  const master = nodeOf(await cloud().inspect("default"), "master_0");
  const set = await cloud().run(["run", ...login, show], { stdin: "s3cret word\n" });
  expect(set.stdout.split("\n")).toEqual([
    "/opt/cluster/active/integration-test",
    "bob",
    "s3cret word",
    "it's $5",
    "two words",
    "3",
    master.privateAddress,
    "",
  ]);
  const unset = await cloud().run(["run", "--no-test-env", ...login, show], {
    stdin: "s3cret word\n",
  });
  expect(unset.stdout.split("\n").slice(1)).toEqual([
    "bob",
    "s3cret word",
    "it's $5",
    "two words",
    "",
    "",
    "",
  ]);
  expect(unset.stdout.split("\n")[0]).not.toContain("/opt/cluster");
});

// Shows R31, R33, R63, R77, R87.
test("inspect names the nodes and the key, and its ssh-config logs in", async () => {
  const cluster = await cloud().inspect("default");
  expect(cluster.nodes.map((node) => node.reference)).toEqual([
    "master_0",
    "agent_0",
    "agent_1",
    "public_agent_0",
  ]);
  expect((await stat(cluster.sshKey.path)).mode & 0o777).toBe(0o600);
  const config = `${cloud().folder}/cluster.ssh`;
  await Bun.write(config, (await cloud().run(["inspect", "--output", "ssh-config"])).stdout);
  const logins = await Promise.all(
    ["master_0", "public_agent_0"].map((name) =>
      Bun.$`ssh -F ${config} ${name} echo in`.nothrow().text(),
    ),
  );
  expect(logins).toEqual(["in\n", "in\n"]);
  expect((await fetch(cluster.webUi)).status).toBe(200);
});

test("a sudo that insists on a terminal is named as the reason, with one hint for all nodes", async () => {
  const rule = "/etc/sudoers.d/e2e-requiretty";
  const onAgents = async (...words: readonly string[]) =>
    cloud().run(["run", "--no-test-env", "--node", "agents", ...words]);
  const config = `${cloud().folder}/agents.ssh`;
  await Bun.write(config, (await cloud().run(["inspect", "--output", "ssh-config"])).stdout);
  expect(await onAgents(`echo 'Defaults requiretty' >${rule}`)).toMatchObject({ status: 0 });
  const [refused, json, single] = [
    await onAgents("true"),
    await onAgents("--output", "json", "true"),
    await cloud().run(["run", "--no-test-env", "--node", "agent_0", "true"]),
  ];
  // On a terminal, sudo goes on working.
  for (const name of ["agent_0", "agent_1"])
    await Bun.$`ssh -tt -F ${config} ${name} sudo rm ${rule}`.quiet();
  expect([refused.status, single.status]).toEqual([255, 255]);
  for (const { stderr } of [refused, single]) {
    expect(stderr).toContain("agent_0 (");
    expect(stderr).toContain("did not run the command as root: sudo: ");
    expect(stderr.split("requiretty")).toHaveLength(2);
  }
  expect(refused.stderr).toContain("agent_1 (");
  const error = { hint: expect.stringContaining("requiretty") };
  expect(JSON.parse(json.stdout)).toMatchObject({ nodes: [{ error }, { error }] });
  expect(await onAgents("true")).toMatchObject({ status: 0, stderr: "" });
});

// Shows R32, R68.
test("a node is found by any of its four names, and an unknown one ends with 3", async () => {
  const cluster = await cloud().inspect("default");
  const node = nodeOf(cluster, "public_agent_0");
  const names = [node.reference, node.id, node.publicAddress, node.privateAddress];
  const ran = await Promise.all(
    names.map((name) => cloud().run(["run", "--no-test-env", "--node", name, "hostname"])),
  );
  expect(new Set(ran.map(({ stdout }) => stdout)).size).toBe(1);
  expect(ran[0]!.stdout).not.toBe("");
  const unknown = await cloud().run(["run", "--node", "agent_7", "hostname"]);
  expect(unknown).toMatchObject({ status: 3, stdout: "" });
  expect(unknown.stderr).toContain("master_0, agent_0, agent_1, public_agent_0");
});

// Shows R62.
test("list shows the cluster, and another region's error names this one", async () => {
  expect((await cloud().run(["list", "--quiet"])).stdout).toBe("default\n");
  const listed = await cloud().run(["list", "--output", "json", "-vvv"]);
  expect(JSON.parse(listed.stdout)).toMatchObject({
    schemaVersion: 1,
    clusters: [{ id: "default", counts: { masters: 1, agents: 2, publicAgents: 1 } }],
  });
  const everywhere = await cloud().run(["list", "--all-regions", "--cloud-region", "us-east-1"]);
  expect(everywhere.stdout).toMatch(/^us-west-2 +default +running/m);
  const elsewhere = await cloud().run(["inspect", "--cloud-region", "us-east-1"]);
  expect(elsewhere).toMatchObject({ status: 3, stdout: "" });
  expect(elsewhere.stderr).toContain("us-west-2");
});

// Shows R92, R125.
test("a host key that was never seen is refused with 255", async () => {
  const cluster = await cloud().inspect("default");
  const knownHosts = cluster.sshKey.path.replace(/id_ed25519$/, "known_hosts");
  const pinned = await Bun.file(knownHosts).text();
  const keyOf = (reference: string): string => {
    const { publicAddress } = nodeOf(cluster, reference);
    const line =
      pinned.split("\n").find((candidate) => candidate.startsWith(`${publicAddress} `)) ?? "";
    return line.slice(publicAddress.length);
  };
  await Bun.write(knownHosts, pinned.replace(keyOf("master_0"), keyOf("agent_0")));
  const refused = await cloud().run(["run", "hostname"]);
  await Bun.write(knownHosts, pinned);
  expect(refused).toMatchObject({ status: 255, stdout: "" });
  expect(refused.stderr).toContain("master_0 (");
  expect(refused.stderr).not.toMatch(/ssh-keygen|REMOTE HOST IDENTIFICATION/);
  expect(refused.stderr).toEndWith("\n[host-key-changed]\n");
  expect((await cloud().run(["run", "true"])).status).toBe(0);
});

test("a restarted node comes back with its addresses and its host key, and the platform is ready again", async () => {
  const onAgent = (line: string) =>
    cloud().run(["run", "--no-test-env", "--node", "agent_1", line]);
  const boot = "cut -d ' ' -f 22 /proc/1/stat";
  const [before, booted] = [await cloud().inspect("default"), await onAgent(boot)];
  expect(await cloud().run(["node", "restart", "agent_1"])).toMatchObject({
    status: 0,
    stdout: "",
  });
  const again = await onAgent(boot);
  expect(
    { status: again.status, isLater: Number(again.stdout) > Number(booted.stdout) },
    again.stderr,
  ).toEqual({
    status: 0,
    isLater: true,
  });
  expect((await cloud().inspect("default")).nodes).toEqual([...before.nodes]);
  expect(await cloud().run(["wait", "--timeout", "14m"])).toMatchObject({ status: 0, stdout: "" });
  expect(await cloud().run(["run", "srun", "-N2", "hostname"])).toMatchObject({ status: 0 });
});

// The machines of this cloud are containers.
test("the clock of a container's computer stays as it is", async () => {
  const before = Date.now() - performance.now();
  const wrong = await cloud().run(["fault", "clock", "agent_0", "--offset", "+2s"]);
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining("it is a container") });
  expect(Math.abs(Date.now() - performance.now() - before)).toBeLessThan(1_000);
});

test("a slow network begins, or the error names what the kernel lacks", async () => {
  const fault = (line: string) => cloud().run(["fault", ...line.split(" ")]);
  const slow = await fault("network agent_0 --delay 300ms --loss 1% --rate 1mbit --for 10m");
  if (slow.status !== 0)
    expect(slow).toMatchObject({ status: 1, stderr: expect.stringContaining("sch_netem") });
  else {
    expect(slow.stderr).toMatch(/a round trip takes 3\d\d(?:\.\d+)? ms/);
    expect(await fault("heal")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^[0-9a-f]{8}\n$/),
    });
  }
  const queues = await cloud().run([
    "run",
    "--no-test-env",
    "--node",
    "agent_0",
    "tc qdisc show | grep -c e2e",
  ]);
  expect(queues.stdout).toBe("0\n");
});

function nodeOf({ nodes }: Inspected, reference: string): InspectedNode {
  const node = nodes.find((candidate) => candidate.reference === reference);
  if (node === undefined) throw new Error(`there is no ${reference}`);
  return node;
}
