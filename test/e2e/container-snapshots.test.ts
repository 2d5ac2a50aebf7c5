/** Snapshots of a cluster of containers: created, restored, damaged, interrupted, and removed with the cluster. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { commandsOf, createWords } from "./support/conformance.ts";
import { containerSubject, containerWitness } from "./support/container-conformance.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { testSnapshots } from "./support/snapshot-conformance.ts";
import {
  docker,
  nodeImage,
  pathWithEngine,
  startTestContainers,
} from "./support/test-containers.ts";

const proxy = "http://proxy.example.test:3128";
const { backend: containers, artifact } = shareBackend(startTestContainers);
const subject = containerSubject(containers, artifact, {
  name: "saved",
  agents: 1,
  publicAgents: 0,
  nodeImage,
});
const { id } = subject;
const { ask, on } = commandsOf(subject);
const snapshot = async (...words: readonly string[]) => ask(["snapshot", ...words]);
const onAgent = async (script: string) => on("agent_0", script);

/** Every image and volume of the cluster's snapshots, also those without a name. */
async function saved(): Promise<readonly string[]> {
  const filters = ["--quiet", `--filter=label=cluster-e2e.cluster-id=${id()}`];
  const found = await Promise.all([
    docker(["images", ...filters]),
    docker(["volume", "ls", ...filters]),
  ]);
  return found
    .flatMap((text) => text.split("\n"))
    .filter((line) => line !== "")
    .toSorted();
}

beforeAll(async () => {
  // The engine's client gives its containers this proxy, which nothing here uses: nodes reach each other directly.
  const config = join(containers().folder, "engine-client");
  const proxies = { default: { httpProxy: proxy, noProxy: ".example.test" } };
  await Bun.write(join(config, "config.json"), JSON.stringify({ proxies }));
  const created = await containers().run([...createWords(subject), "--wait"], {
    environment: { DOCKER_CONFIG: config },
  });
  if (created.status !== 0) throw new Error(created.stderr);
});

testSnapshots(subject, containerWitness(subject, containers));

/** Names that a node's own files have, and a program there has set. */
const names = {
  set:
    'sed -i "s/localhost/localhost here/" /etc/hosts && echo "192.0.2.7 db.example.test" >>/etc/hosts && ' +
    'printf "nameserver 192.0.2.53\\n" >/tmp/servers && cat /etc/resolv.conf >>/tmp/servers && ' +
    "mv /tmp/servers /etc/resolv.conf && hostnamectl set-hostname renamed.example.test",
  look:
    "grep -c -e here -e db.example /etc/hosts; head -n 1 /etc/resolv.conf; getent hosts db.example.test; " +
    "grep -c agent-0 /etc/hosts; hostname; cat /etc/hostname",
  seen: /^3\nnameserver 192\.0\.2\.53\n192\.0\.2\.7 +db\.example\.test\n1\nrenamed\.example\.test\nrenamed\.example\.test$/,
  lose: "echo lost >>/etc/hosts; rm /etc/resolv.conf; hostnamectl set-hostname lost",
};

const python = (line: string) => `python3 -c '${line}'`;
const acl =
  "0200000001000600ffffffff02000400e803000004000400ffffffff10000400ffffffff20000400ffffffff";
const attributes = {
  set: python(
    `import os; open("/srv/f", "w"); [os.setxattr("/srv/f", n, v) for n, v in [("user.note", b"saved"), ("trusted.t", b"t"), ("system.posix_acl_access", bytes.fromhex("${acl}"))]]; os.mkdir(b"/srv/d\\xff"); os.setxattr(b"/srv/d\\xff", "user.d", b"d")`,
  ),
  look: python(
    'import os; print(sorted(os.listxattr("/srv/f")), os.getxattr("/srv/f", "user.note"), os.listxattr(b"/srv/d\\xff"))',
  ),
  seen: "['system.posix_acl_access', 'trusted.t', 'user.note'] b'saved' ['user.d']",
  change: python('import os; os.setxattr("/srv/f", "user.note", b"later")'),
};

const holes = {
  set: "truncate -s 64M /srv/holes && echo end >>/srv/holes && ln /srv/holes /srv/link; ln /srv/f /srv/f2",
  look: "stat -c '%b %s %h' /srv/holes; tail -c 4 /srv/link; stat -c %h /srv/f; echo new >/srv/f2; cat /srv/f",
  seen: /^\d{1,4} 67108868 2\nend\n2\nnew$/,
};

/** Logins have the proxy of the engine's client, but not for the cluster's nodes. */
const proxies = {
  look: 'echo "$http_proxy $HTTP_PROXY"; for word in .example.test master-0; do case ",$no_proxy," in *",$word,"*) echo direct ;; esac; done; env -u http_proxy grep -c ^http_proxy= /etc/environment',
  seen: `${proxy} ${proxy}\ndirect\ndirect\n1`,
};

test("a node's own names, attributes, access lists and holes come back with a restore, as do proxies; a restart keeps what was there", async () => {
  for (const { set } of [names, attributes, holes]) await onAgent(set);
  expect(await onAgent(names.look)).toMatch(names.seen);
  expect(await onAgent(attributes.look)).toBe(attributes.seen);
  expect(await onAgent(proxies.look)).toBe(proxies.seen);
  expect((await snapshot("create", "own")).status).toBe(0);
  await onAgent(attributes.change);
  expect((await ask(["node", "restart", "agent_0"])).status).toBe(0);
  expect(await onAgent(names.look)).toMatch(names.seen);
  expect(await onAgent(attributes.look)).toBe(attributes.seen.replace("saved", "later"));
  await onAgent(names.lose);
  expect((await snapshot("restore", "own")).status).toBe(0);
  expect(await onAgent(names.look)).toMatch(names.seen);
  expect(await onAgent(attributes.look)).toBe(attributes.seen);
  expect(await onAgent(holes.look)).toMatch(holes.seen);
  expect(await onAgent(proxies.look)).toBe(proxies.seen);
  expect((await snapshot("restore", "installed")).status).toBe(0);
  expect((await snapshot("delete", "own")).status).toBe(0);
  expect(await onAgent("hostname; grep -c example /etc/hosts")).toBe("agent-0\n0");
});

const cases = [
  {
    id: "snapshot-exists",
    status: 1,
    words: ["create", "installed"],
    says: "delete that snapshot first",
  },
  { id: "snapshot-not-found", status: 3, words: ["restore", "other"], says: "It has: installed." },
  { id: "bad-usage", status: 2, words: ["create", "No/Name"], says: "lower-case letters" },
  { id: "bad-usage", status: 2, words: ["restore"], says: "NAME: required by restore" },
] as const;

test.each(cases)("$id: $words", async ({ id: errorId, status, words, says }) => {
  const ran = await snapshot(...words);
  expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status, stdout: "" });
  for (const text of [says, `[${errorId}]`]) expect(ran.stderr).toContain(text);
});

test("a stopped node is named, keeps a snapshot from being made, and comes back at its address, as does a stopped cluster", async () => {
  const run = (...words: readonly string[]) => containers().run([...words, "-c", id()]);
  const states = async () => (await containers().inspect(id())).nodes.map(({ state: now }) => now);
  const before = await containers().inspect(id());
  expect((await run("node", "stop", "--force", "agents")).status).toBe(0);
  expect(await states()).toEqual(["running", "stopped"]);
  const stopped = {
    id: "node-stopped",
    status: 1,
    words: ["fault", "partition", "--between", "agent_0"],
  };
  const refused = await containers().run([
    ...stopped.words.slice(0, 1),
    "-c",
    id(),
    ...stopped.words.slice(1),
  ]);
  expect(refused.status).toBe(stopped.status);
  expect(refused.stderr).toContain(`[${stopped.id}]`);
  // 1 may be the command's own status.
  expect((await containers().run(["run", "-c", id(), "--node", "agent_0", "true"])).status).toBe(
    255,
  );
  const both = await containers().run([
    "run",
    "-c",
    id(),
    "--no-test-env",
    "--node",
    "all",
    "hostname",
  ]);
  expect({ status: both.status, stdout: both.stdout }).toEqual({
    status: 255,
    stdout: "master_0: master-0\n",
  });
  expect((await run("wait")).stderr).toContain("agent_0");
  expect((await snapshot("create", "partly")).stderr).toContain("[machine-failed]");
  expect((await run("stop")).status).toBe(0);
  expect((await containers().run(["list"])).stdout).toMatch(new RegExp(`^${id()} +stopped `, "m"));
  expect((await run("start")).status).toBe(0);
  expect((await run("node", "pause", "agent_0")).status).toBe(0);
  expect(await states()).toEqual(["running", "paused"]);
  expect((await run("node", "restart", "all", "--force")).status).toBe(0);
  const after = await containers().inspect(id());
  const places = ({ nodes }: typeof before) =>
    nodes.map(({ id: machine, privateAddress }) => [machine, privateAddress]);
  expect(places(after)).toEqual(places(before));
  expect(await run("wait", "--timeout", "14m")).toMatchObject({ status: 0 });
  expect((await run("node", "stop", "agent_7")).status).toBe(3);
});

/** The program is killed as soon as it runs one of these commands of Docker, which still takes place. */
async function killedAt(command: string, ...words: readonly string[]): Promise<string | undefined> {
  const lines = (real: string) =>
    `[ "$1" != ${command} ] || { ${real} "$@" & kill -KILL $PPID; wait; exit; }`;
  const environment = { PATH: await pathWithEngine(containers().folder, "docker", lines) };
  return (await containers().run(["snapshot", ...words, "-c", id()], { environment })).signal;
}

test("a stopped cluster whose network was pruned is listed, restored and started", async () => {
  const addresses = async () =>
    (await containers().inspect(id())).nodes.map(({ privateAddress }) => privateAddress);
  const before = await addresses();
  const prune = async (): Promise<void> => {
    expect((await containers().run(["stop", "-c", id()])).status).toBe(0);
    const filter = `--filter=label=cluster-e2e.cluster-id=${id()}`;
    await docker(["network", "rm", await docker(["network", "ls", "--quiet", filter])]);
  };
  await prune();
  expect((await containers().run(["list"])).stdout).toMatch(new RegExp(`^${id()} +stopped `, "m"));
  expect((await containers().run(["start", "-c", id()])).status).toBe(0);
  expect(await onAgent("ping -c1 -W5 master-0 >/dev/null && echo reached")).toBe("reached");
  await prune();
  const restored = await snapshot("restore", "installed");
  expect(restored.status, restored.stderr).toBe(0);
  expect(await addresses()).toEqual(before);
});

test("a stopped cluster whose nodes were pruned too is listed, and a snapshot brings it back", async () => {
  const before = await containers().inspect(id());
  expect((await containers().run(["stop", "-c", id()])).status).toBe(0);
  const filter = `--filter=label=cluster-e2e.cluster-id=${id()}`;
  const nodes = await docker(["ps", "--all", "--quiet", filter]);
  await docker(["rm", "--volumes", ...nodes.split("\n")]);
  await docker(["network", "rm", await docker(["network", "ls", "--quiet", filter])]);
  expect((await containers().run(["list"])).stdout).toMatch(
    new RegExp(`^${id()} +incomplete `, "m"),
  );
  const restored = await snapshot("restore", "installed");
  expect(restored.status, restored.stderr).toBe(0);
  const places = ({ nodes: all }: typeof before) =>
    all.map(({ reference, privateAddress }) => [reference, privateAddress]);
  expect(places(await containers().inspect(id()))).toEqual(places(before));
  expect(await onAgent("ping -c1 -W5 master-0 >/dev/null && cat /root/note")).toBe("saved");
});

test("nodes go on after a snapshot was cut short; doctor tells of what is left, and the same name can be used again", async () => {
  expect(await killedAt("commit", "create", "cut")).toBe("SIGKILL");
  expect(await onAgent("hostname")).toBe("agent-0");
  expect((await snapshot("list")).stdout).toMatch(/^cut .* incomplete$/m);
  const doctor = await containers().run(["doctor"]);
  expect(doctor.stdout).toContain(`The snapshot "cut" of cluster "${id()}" is incomplete.`);
  const unusable = { id: "snapshot-unusable", status: 1, words: ["restore", "cut"] };
  const refused = await snapshot(...unusable.words);
  expect(refused.status).toBe(unusable.status);
  expect(refused.stderr).toContain(`[${unusable.id}]`);
  expect((await snapshot("create", "cut")).status).toBe(0);
  expect((await snapshot("list")).stdout).toMatch(/^cut .* complete$/m);
});

test("a sparse file for which the disk has no room is named before any node pauses, and keeps its holes", async () => {
  await onAgent("truncate -s 4T /srv/holes");
  const pauses = join(containers().folder, "pauses");
  const lines = (): string => `[ "$1" != pause ] || echo >>'${pauses}'`;
  const environment = { PATH: await pathWithEngine(containers().folder, "docker", lines) };
  const ran = await containers().run(["snapshot", "create", "full", "-c", id()], { environment });
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain("[capacity-lacking]");
  expect(ran.stderr.replaceAll(/\s+/g, " ")).toContain("/srv/holes of agent_0 (4398.0 GB)");
  expect(await Bun.file(pauses).exists()).toBeFalse();
  expect(await onAgent("stat -c %b /srv/holes; rm /srv/holes")).toBe("0");
});

test("a full disk ends a snapshot with a clear error, and leaves nothing", async () => {
  const lines = `[ "$1" != commit ] || { echo 'Error response from daemon: no space left on device' >&2; exit 1; }`;
  const environment = { PATH: await pathWithEngine(containers().folder, "docker", () => lines) };
  const before = await saved();
  const ran = await containers().run(["snapshot", "create", "full", "-c", id()], { environment });
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain("[capacity-lacking]");
  expect(await saved()).toEqual(before);
  expect(await onAgent("hostname")).toBe("agent-0");
});

test("a restore that is killed, wherever it is, can be repeated", async () => {
  for (const moment of ["rm", "create", "run", "start"]) {
    expect([moment, await killedAt(moment, "restore", "installed")]).toEqual([moment, "SIGKILL"]);
    expect((await containers().run(["list", "--quiet"])).stdout).toContain(id());
  }
  const both = await Promise.all([
    snapshot("restore", "installed"),
    snapshot("restore", "installed"),
  ]);
  expect(both.map(({ status }) => status)).toEqual([0, 0]);
  expect(await onAgent("cat /root/note")).toBe("saved");
});

test("a snapshot that nodes were restored from can be deleted, and destroy removes the others after asking", async () => {
  expect(await snapshot("delete", "installed")).toMatchObject({ status: 0, stdout: "installed\n" });
  expect(await onAgent("hostname")).toBe("agent-0");
  const asked = await containers().run(["destroy", "-c", id()]);
  expect({ status: asked.status, stdout: asked.stdout }).toEqual({ status: 2, stdout: "" });
  expect(asked.stderr).toContain("[bad-usage]");
  expect(asked.stderr).toMatch(/snapshots, .*: cut\./);
  expect(await containers().things(id())).toHaveLength(3);
  expect((await containers().run(["destroy", "--yes", "-c", id()])).status).toBe(0);
  expect([...(await containers().things(id())), ...(await saved())]).toEqual([]);
});
