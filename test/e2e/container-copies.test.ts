/** New clusters of containers from a snapshot: beside their source, without it, interrupted, refused, and removed. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { createWords } from "./support/conformance.ts";
import { containerSubject, containerWitness } from "./support/container-conformance.ts";
import { interruptAt } from "./support/ended-early.ts";
import { listenEverywhere } from "./support/listener.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { saveInstalled, testCopy } from "./support/snapshot-conformance.ts";
import { attackCommand, serviceScript } from "./support/overlay-attacker.ts";
import {
  docker,
  nodeImage,
  pathWithEngine,
  startTestContainers,
} from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);
const id = (name: string): string => containers().id(name);
const subject = containerSubject(containers, artifact, {
  name: "source",
  agents: 1,
  publicAgents: 0,
  nodeImage,
});
const source = subject.id;
const run = async (words: string, cluster: string, ...more: readonly string[]) =>
  containers().run([...words.split(" "), "-c", cluster, ...more]);
const on = async (cluster: string, script: string): Promise<string> =>
  (await run("run --no-test-env --node agent_0", cluster, script)).stdout.trim();
const nodesOf = async (cluster: string) => (await containers().inspect(cluster)).nodes;

/** Every image, container, network and volume of the cluster ids, also images without a name. */
async function things(...names: readonly string[]): Promise<readonly string[]> {
  const filters = names.map((name) => `--filter=label=cluster-e2e.cluster-id=${id(name)}`);
  const kinds = ["ps --all", "network ls", "volume ls", "images"].map((words) => words.split(" "));
  const found = await Promise.all(
    kinds.flatMap((words) => filters.map(async (filter) => docker([...words, "--quiet", filter]))),
  );
  const lines = found.flatMap((text) => text.split("\n"));
  return lines.filter((line) => line !== "").toSorted();
}

beforeAll(async () => {
  const created = await containers().run([...createWords(subject), "--wait"]);
  if (created.status !== 0) throw new Error(created.stderr);
  await containerWitness(subject, containers).plant();
  await saveInstalled(subject);
});

test("as JSON, a plan says what a copy would be made from", async () => {
  const words = `create --from ${source()}:installed --dry-run --output json`;
  expect(JSON.parse((await run(words, id("planned"))).stdout)).toMatchObject({
    plan: { from: { cluster: source(), snapshot: "installed" }, memory: "1g" },
  });
});

const { id: copyId } = testCopy(subject);

test("a copy's nodes have their private addresses and names, and public addresses of their own", async () => {
  const [own, others] = [await nodesOf(copyId()), await nodesOf(source())];
  const onCopy = async (script: string) => on(copyId(), script);
  expect(
    own.filter(({ publicAddress }) => others.some((node) => node.publicAddress === publicAddress)),
  ).toEqual([]);
  expect(await onCopy("ip -4 route get 192.0.2.1")).toContain(`src ${own[1]!.privateAddress} `);
  expect(await onCopy("getent ahostsv4 master-0")).toStartWith(`${own[0]!.privateAddress} `);
  expect(await onCopy("getent ahostsv4 agent-0 | cut -d' ' -f1 | sort -u")).toBe(
    own[1]!.privateAddress,
  );
  expect(await onCopy(`getent hosts ${own[0]!.privateAddress}`)).toMatch(/^\S+ +master-0$/);
  expect(await onCopy("cat /var/lib/docker/deep/note; wc -l </root/.ssh/authorized_keys")).toBe(
    "saved\n1",
  );
  expect(await docker(["inspect", "--format={{.HostConfig.Memory}}", own[0]!.id])).toBe(
    "1073741824",
  );
});

// Shows R120.
test("nobody but the nodes reaches their private network: no other user of this computer, and no user on a node", async () => {
  const [master, agent] = await nodesOf(copyId());
  const [victim, other] = [agent!.privateAddress, master!.privateAddress];
  const bridge = (
    await docker(["network", "ls", "--quiet", `--filter=label=cluster-e2e.cluster-id=${copyId()}`])
  ).trim();
  const file = "/root/requests";
  await on(copyId(), serviceScript(victim, file));
  const neighbour = `ip neigh show ${other} dev e2e0`;
  await on(copyId(), `ping -c1 ${other}`);
  const before = await on(copyId(), neighbour);
  const words = attackCommand({
    outer: agent!.publicAddress,
    victim,
    other,
    device: `br-${bridge}`,
  });
  const asNobody = Bun.spawn([...words], {
    uid: 65_534,
    gid: 65_534,
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    stdout: "pipe",
  });
  expect([await asNobody.exited, await new Response(asNobody.stdout).text()]).toEqual([
    0,
    "sent\n",
  ]);
  const onNode = [
    "runuser",
    "-u",
    "nobody",
    "--",
    ...attackCommand({ outer: agent!.publicAddress, victim, other, device: "" }),
  ];
  expect((await run("run --no-test-env --node master_0", copyId(), ...onNode)).stdout).toBe(
    "sent\n",
  );
  // A node's own request arrives, and after the others.
  const request = `exec 3<>/dev/udp/${victim}/7777; echo from a node >&3`;
  await run("run --no-test-env --node master_0", copyId(), "bash", "-c", request);
  await on(copyId(), `until grep -q node ${file}; do sleep 0.1; done`);
  expect(await on(copyId(), `cat ${file}`)).toBe("from a node");
  expect([before.split(" ")[2], await on(copyId(), neighbour)]).toEqual([
    expect.stringMatching(/^02:e2:/),
    before,
  ]);
});

const refusals = [
  { errorId: "snapshot-not-found", from: "source:other" },
  { errorId: "cluster-not-found", from: "nobody:installed" },
] as const;

test.each(refusals)("$errorId: --from $from", async ({ errorId, from }) => {
  const [cluster = "", snapshot] = from.split(":");
  const refused = await run(`create --from ${id(cluster)}:${snapshot}`, id("refused"));
  expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status: 3, stdout: "" });
  expect(refused.stderr).toContain(`[${errorId}]`);
  expect(await things("refused")).toEqual([]);
});

// Shows R138.
test("nodes that are offline reach each other and nothing else, after a restart, a restore and a pruned network, and in copies too", async () => {
  await using listener = await listenEverywhere();
  const [cluster, twin, loaded] = [id("offline"), id("offline-copy"), id("offline-file")];
  const succeed = async (words: string, of: string, ...more: readonly string[]) => {
    const ran = await run(words, of, ...more);
    expect(ran.status, ran.stderr).toBe(0);
    return ran.stdout;
  };
  const networkOf = async (of: string) =>
    (
      await docker(["network", "ls", "--quiet", `--filter=label=cluster-e2e.cluster-id=${of}`])
    ).trim();
  const reachedFrom = async (of: string): Promise<boolean> => {
    const gateway = await docker([
      "network",
      "inspect",
      "--format={{(index .IPAM.Config 0).Gateway}}",
      await networkOf(of),
    ]);
    await succeed(
      "run --no-test-env --node all",
      of,
      "bash",
      "-c",
      listener.sending(of, [gateway]),
    );
    const heard = await listener.heard([gateway]);
    expect(heard.filter((text) => text !== of)).toEqual([]);
    return heard.length > 0;
  };
  const expectOffline = async (of: string) => {
    expect(await reachedFrom(of)).toBe(false);
    expect(
      await docker(["network", "inspect", "--format={{.Internal}}", await networkOf(of)]),
    ).toBe("true");
    expect(
      await on(of, "ip route show default; timeout 60 getent hosts www.example.com; echo $?"),
    ).toBe("2");
    expect(await on(of, "ping -c1 master-0 >/dev/null && echo reached")).toBe("reached");
  };
  expect(await reachedFrom(source())).toBe(true);

  const options = ["--public-agents", "0", "--node-image", nodeImage, "--wait", artifact()];
  await succeed("create --variant oss --offline", cluster, ...options);
  await expectOffline(cluster);
  await succeed("node restart agent_0", cluster);
  await expectOffline(cluster);
  await succeed("snapshot create installed", cluster);
  await succeed("snapshot restore installed", cluster);
  await expectOffline(cluster);
  await succeed("stop", cluster);
  await docker(["network", "rm", await networkOf(cluster)]);
  await succeed("start", cluster);
  await expectOffline(cluster);
  // Not before the snapshot: a job that has just ended is still running in slurmctld's state on disk, for ever in a copy.
  expect(await succeed("run", cluster, "srun", "-N1", "hostname")).toBe("agent-0\n");
  const file = join(containers().folder, "offline.zst");
  await succeed("snapshot save installed", cluster, file);
  await succeed(`create --from ${cluster}:installed`, twin, "--wait", "--timeout", "14m");
  await expectOffline(twin);
  expect(await succeed("run", twin, "srun", "-N1", "hostname")).toBe("agent-0\n");
  for (const each of [twin, cluster]) await succeed("destroy --yes", each);
  await succeed(`create --from ${file}`, loaded);
  await expectOffline(loaded);
  await succeed("destroy --yes", loaded);
});

test("a snapshot that lacks an image is refused before anything exists", async () => {
  expect((await run("snapshot create broken", source())).status).toBe(0);
  const images = await docker([
    "images",
    "--format={{.Repository}}:{{.Tag}}",
    "localhost/cluster-e2e-snapshot",
  ]);
  await docker(["rmi", images.split("\n").find((name) => name.endsWith("-broken-agent_0"))!]);
  const refused = await run(`create --from ${source()}:broken`, id("refused"));
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain("[snapshot-unusable]");
  expect(await things("refused")).toEqual([]);
  expect((await run("snapshot delete broken", source())).status).toBe(0);
});

test("an interrupt removes the copy, and a program killed while it copies leaves what doctor names and destroy removes", async () => {
  const words = ["create", "--from", `${source()}:installed`, "-c", id("cut")];
  await interruptAt(containers(), "Boot …", words);
  expect(await things("cut")).toEqual([]);
  for (const moment of ["network", "run", "start"]) {
    const lines = (real: string) =>
      `[ "$1" != ${moment} ] || { ${real} "$@" & kill -KILL $PPID; wait; exit; }`;
    const environment = { PATH: await pathWithEngine(containers().folder, "docker", lines) };
    const refused = await containers().run(words, { environment });
    expect([moment, refused.signal]).toEqual([moment, "SIGKILL"]);
  }
  const doctor = await containers().run(["doctor"]);
  expect(doctor.stdout).toContain(`cluster "${id("cut")}" (its create was interrupted)`);
  expect((await run("destroy", id("cut"))).status).toBe(0);
  expect(await things("cut")).toEqual([]);
});

test("`once` tests on a copy and removes it; the source and its snapshot stay", async () => {
  const before = await things("source");
  const words = ["once", "--from", `${source()}:installed`, "--", "srun", "-N1", "hostname"];
  const ran = await containers().run(words);
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({
    status: 0,
    stdout: "agent-0\n",
  });
  expect(await things("source")).toEqual(before);
});

test("a copy outlives its source, boots again, and can be saved and copied; the last cluster takes all images with it", async () => {
  expect((await run("snapshot create again", copyId())).status).toBe(0);
  const destroyed = await run("destroy --yes", source());
  expect({ status: destroyed.status }, destroyed.stderr).toEqual({ status: 0 });
  expect((await run("stop", copyId())).status).toBe(0);
  expect((await run("start", copyId())).status).toBe(0);
  expect(await run("wait --timeout 14m", copyId())).toMatchObject({ status: 0 });
  const third = await run(
    `create --from ${copyId()}:again`,
    id("third"),
    "--wait",
    "--timeout",
    "3m",
  );
  expect({ status: third.status }, third.stderr).toEqual({ status: 0 });
  // A snapshot doesn't save a lifetime.
  expect(await on(id("third"), "systemctl is-active cluster-e2e-deadline")).toBe("inactive");
  const addresses = async (cluster: string) =>
    (await nodesOf(cluster)).map(({ privateAddress }) => privateAddress);
  expect(await addresses(id("third"))).toEqual(await addresses(copyId()));
  expect((await run("destroy --yes", copyId())).status).toBe(0);
  expect(await run("run", id("third"), "srun", "-N1", "hostname")).toMatchObject({
    stdout: "agent-0\n",
  });
  expect((await run("destroy --yes", id("third"))).status).toBe(0);
  expect(await things("source", "source-copy", "third")).toEqual([]);
});
