/**
 * The main flow on containers: an open source cluster, from its creation to a job across its agents, and its removal.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { browserLack, look, startBrowser } from "./support/browser.ts";
import { clusterNames, makeCheckout } from "./support/checkout.ts";
import { until } from "../support/until.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { docker, bareNodeImage, startTestContainers } from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);
const id = (): string => containers().id("flow");

beforeAll(async () => {
  await mkdir(join(containers().folder, "shared"));
  await Bun.write(join(containers().folder, "shared", "note"), "from outside\n");
});

const createWords = () => [
  ..."create --variant oss --agents 2 --memory 1g --cpus 1.5".split(" "),
  "--node-image",
  bareNodeImage,
  "--custom-volume",
  `${containers().folder}/shared:/shared:ro`,
  "-c",
  id(),
  artifact(),
];

// Shows R2.
test("doctor finds nothing that would stop it", async () => {
  const ran = await containers().run(["doctor", "--output", "json"]);
  const { checks } = JSON.parse(ran.stdout) as {
    readonly checks: readonly { readonly name: string; readonly status: string }[];
  };
  const own =
    "engine,node addresses,storage driver,image space,memory,cgroups,inotify,mounts,selinux,metadata service,leftovers";
  expect(checks.map(({ name }) => name).join(",")).toContain(own);
  expect(checks.filter(({ status }) => status === "fail")).toEqual([]);
  expect(ran.status).toBe(0);
});

test("a dry run says what would be made, and makes nothing", async () => {
  const ran = await containers().run([...createWords(), "--dry-run"]);
  expect(ran.status).toBe(0);
  expect(ran.stdout).toContain(`${bareNodeImage} (present)`);
  expect(ran.stdout).toContain("4: 1 master, 2 agents, 1 public agent");
  expect(await containers().things(id())).toEqual([]);
});

test("where no distribution is named, the one that suits this machine's cgroups is taken, and said", async () => {
  const words = ["create", "--variant", "oss", "--dry-run", "-c", id(), artifact()];
  const expected =
    (await docker(["info", "--format={{.CgroupVersion}}"])) === "2" ? "debian-12" : "centos-7";
  const ran = await containers().run(words);
  expect(
    { status: ran.status, said: /^Distribution +(.*)$/m.exec(ran.stdout)?.[1] },
    ran.stderr,
  ).toEqual({
    status: 0,
    said: expected,
  });
  expect((await containers().run(["doctor"])).stdout).toMatch(
    new RegExp(`cgroups .*nodes run ${expected} by default`),
  );
});

test("create prints the id on stdout, and says nothing of costs or an end", async () => {
  const created = await containers().run(createWords());
  expect({ status: created.status, stdout: created.stdout }).toEqual({
    status: 0,
    stdout: `${id()}\n`,
  });
  expect(created.stderr).toContain(`Next: cluster-container wait --cluster-id ${id()}`);
  expect(created.stderr).not.toMatch(/[Cc]ost|terminate automatically|region/);
  expect(await containers().things(id())).toHaveLength(5);
});

test("the same id again is refused, and says how to get rid of the first", async () => {
  const again = await containers().run(createWords());
  expect(again.status).toBe(1);
  expect(again.stderr).toContain("[cluster-exists]");
  expect(again.stderr).toContain(`cluster-container destroy --cluster-id ${id()}`);
  expect(await containers().things(id())).toHaveLength(5);
});

test("wait returns when the platform is ready, and a job runs across the agents", async () => {
  const waited = await containers().run(["wait", "-c", id(), "--timeout", "14m"]);
  expect(waited).toMatchObject({ status: 0, stdout: "" });
  const ran = await containers().run(["run", "-c", id(), "srun", "-N2", "hostname"]);
  expect(ran.status).toBe(0);
  expect(ran.stdout.trim().split("\n").toSorted()).toEqual(["agent-0", "agent-1"]);
});

test("nodes have the volume and the limits, and find each other by name", async () => {
  const run = (...words: readonly string[]) =>
    containers().run(["run", "-c", id(), "--no-test-env", ...words]);
  expect((await run("--node", "agent_1", "cat /shared/note")).stdout).toBe("from outside\n");
  expect((await run("touch /shared/x")).status).not.toBe(0);
  expect((await run("getent hosts public-agent-0")).stdout).toContain("public-agent-0");
  const format = "--format={{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}";
  const node = (await containers().inspect(id())).nodes[0]!;
  expect(await docker(["inspect", format, node.id])).toBe("1073741824 1500000000");
});

test("a node is a machine: shared memory, ports, names in both directions, IPv6 on loopback, packets that get out", async () => {
  const run = async (line: string) =>
    (
      await containers().run(["run", "-c", id(), "--no-test-env", "--node", "agent_0", line])
    ).stdout.trim();
  expect(await run("df --output=size -B1M /dev/shm | tail -n 1")).toBe("512");
  expect(await run("cat /proc/sys/net/ipv4/ip_unprivileged_port_start")).toBe("1024");
  const { nodes } = await containers().inspect(id());
  const names = nodes.map(
    ({ reference, privateAddress }) => `${privateAddress} ${reference.replaceAll("_", "-")}`,
  );
  expect(
    await run(
      `for a in ${nodes.map((node) => node.privateAddress).join(" ")}; do getent hosts $a; done`,
    ),
  ).toMatch(new RegExp(`^${names.map((line) => line.replace(" ", " +")).join("\n")}$`));
  expect(await run("getent ahostsv4 agent-0 | cut -d' ' -f1 | sort -u")).toBe(
    nodes.find(({ reference }) => reference === "agent_0")!.privateAddress,
  );
  const bind =
    "import socket; socket.socket(socket.AF_INET6).bind((socket.getaddrinfo('::1', 0)[0][4]))";
  expect(await run(`grep -c ^::1 /etc/hosts; python3 -c "${bind}" && echo bound`)).toBe("1\nbound");
  const way =
    (await Bun.$`ip -o route show default`.nothrow().text()).match(/ dev (\S+)/)?.[1] ?? "docker0";
  const outgoing = Number(await Bun.file(`/sys/class/net/${way}/mtu`).text());
  const format = '--format={{index .Options "com.docker.network.driver.mtu"}}';
  const engine = Number(await docker(["network", "inspect", format, "bridge"])) || 1500;
  expect(Number(await run("cat /sys/class/net/eth0/mtu"))).toBe(Math.min(outgoing, engine));
});

test("a node is found by each of its names; its host key is its own", async () => {
  const node = (await containers().inspect(id())).nodes.find(
    ({ reference }) => reference === "public_agent_0",
  )!;
  const names = [node.reference, node.id, node.privateAddress];
  const ran = await Promise.all(
    names.map((name) =>
      containers().run(["run", "-c", id(), "--no-test-env", "--node", name, "hostname"]),
    ),
  );
  expect(ran.map(({ stdout }) => stdout)).toEqual(names.map(() => "public-agent-0\n"));
  const keys = await Promise.all(
    ["master_0", node.reference].map((name) =>
      containers().run([
        "run",
        "-c",
        id(),
        "--no-test-env",
        "--node",
        name,
        "cat /etc/ssh/ssh_host_*_key.pub",
      ]),
    ),
  );
  expect(new Set(keys.map(({ stdout }) => stdout)).size).toBe(2);
  for (const { stdout } of keys) expect(stdout).toMatch(/^ssh-ed25519 \S+\n$/);
});

test("sync sends a checkout", async () => {
  const files = { tests: { "test_it.py": "" }, library: { "own.py": "" } };
  const checkout = await makeCheckout(
    join(containers().folder, "checkout"),
    "oss",
    files,
    clusterNames,
  );
  const synced = await containers().run(["sync", "-c", id(), checkout]);
  expect(synced.status).toBe(0);
  expect((await containers().run(["run", "-c", id(), "ls"])).stdout).toContain("test_it.py");
});

test("inspect and web show addresses that work from here, and ssh-config logs in", async () => {
  const cluster = await containers().inspect(id());
  expect((await stat(cluster.sshKey.path)).mode & 0o777).toBe(0o600);
  expect((await fetch(cluster.webUi)).status).toBe(200);
  const { hostname, containerName } = cluster.nodes.find((node) => node.reference === "agent_1")!;
  expect(hostname).toBe("agent-1");
  expect(await Bun.$`docker exec ${containerName} hostname`.text()).toBe("agent-1\n");
  const opened = await containers().run(["web", "-c", id()]);
  expect(opened).toMatchObject({ status: 0, stdout: `${cluster.webUi}\n` });
  const config = join(containers().folder, "cluster.ssh");
  await Bun.write(
    config,
    (await containers().run(["inspect", "-c", id(), "--output", "ssh-config"])).stdout,
  );
  expect(await Bun.$`ssh -F ${config} agent_1 hostname`.text()).toBe("agent-1\n");
});

describe.skipIf(browserLack !== undefined)(`in a browser (${browserLack ?? "Chromium"})`, () => {
  test("web opens it; the page shows the cluster's version, and each node with its address and state", async () => {
    const { webUi, nodes } = await containers().inspect(id());
    const browser = await startBrowser(join(containers().folder, "desktop"));
    const visit = await browser.visit("open-source", (environment) =>
      containers().run(["web", "-c", id()], { environment }),
    );
    expect(visit).toMatchObject({ status: 0, stdout: `${webUi}\n`, url: webUi });
    expect(visit.refusal).toBeUndefined();
    const [page] = visit.pages;
    expect(page?.text).toMatch(
      new RegExp(
        `^${id()} Slurm \\d+\\.\\d+\\S*, open source 1/1 masters up 3/3 agents registered`,
      ),
    );
    for (const { reference, privateAddress } of nodes) {
      expect(page?.text).toMatch(
        new RegExp(`${reference.replaceAll("_", "-")} ${privateAddress} (?:up|idle)`),
      );
    }
    const { width, height, colours } = await look(page!.picture);
    expect([width, height]).toEqual([1280, 960]);
    expect(colours).toBeGreaterThan(20);
  });
});

test("a console keeps 4 MB of each node at most, with the newest lines, whatever the engine's configuration says", async () => {
  const agent = (await containers().inspect(id())).nodes.find(
    ({ reference }) => reference === "agent_0",
  )!;
  const flood =
    "head -c 12000000 /dev/zero | tr '\\0' x | fold -w 120 >/dev/console; echo the newest line >/dev/console";
  expect((await containers().run(["run", "-c", id(), "--node", "agent_0", flood])).status).toBe(0);
  const consoleText = async () => docker(["logs", "--tail=5", agent.id]);
  await until("the newest line is kept", async () =>
    (await consoleText()).includes("the newest line"),
  );
  const [driver, path] = (
    await docker(["inspect", "--format={{.HostConfig.LogConfig.Type}} {{.LogPath}}", agent.id])
  ).split(" ");
  const sizes = await Bun.$`cat ${{ raw: `${path}*` }} | wc -c`.text();
  expect(driver).toBe("json-file");
  expect(Number(sizes)).toBeLessThanOrEqual(4_100_000);
});

test("a node that reboots itself comes back by itself at its address, without what was in memory", async () => {
  const agentNow = async () =>
    (await containers().inspect(id())).nodes.find(({ reference }) => reference === "agent_1")!;
  const before = await agentNow();
  const bootOf = async () =>
    docker(["inspect", "--format={{.State.StartedAt}} {{.State.Status}}", before.id]);
  const firstBoot = await bootOf();
  const reboot = "touch /run/mark /var/mark; systemctl reboot";
  await containers().run(["run", "-c", id(), "--node", "agent_1", reboot]);
  await until("the engine has started it again", async () => {
    const now = await bootOf();
    return now !== firstBoot && now.endsWith(" running");
  });
  await until("it accepts a login", async () => {
    const marks = "[ ! -e /run/mark ] && cat /var/mark";
    return (await containers().run(["run", "-c", id(), "--node", "agent_1", marks])).status === 0;
  });
  expect(await agentNow()).toEqual(before);
  const waited = await containers().run(["wait", "-c", id()]);
  expect({ status: waited.status }, waited.stderr).toEqual({ status: 0 });
});

test("a container that was killed is told of at once by wait, run and list, and its logs are kept by logs", async () => {
  const agent = (await containers().inspect(id())).nodes.find(
    ({ reference }) => reference === "agent_0",
  )!;
  await docker(["kill", agent.id]);
  const waited = await containers().run(["wait", "-c", id()]);
  expect(waited.status).toBe(1);
  expect(waited.stderr).toMatch(new RegExp(`agent_0 \\(${agent.id}\\) is stopped: .* status 137`));
  expect(waited.stderr).toContain("[machine-failed]");
  const ran = await containers().run(["run", "-c", id(), "--node", "agent_0", "true"]);
  expect(ran.status).toBe(255);
  expect(ran.stderr).toContain("[node-stopped]");
  const listed = await containers().run(["list"]);
  // The last column is there while another test's cluster has a lifetime.
  expect(listed.stdout).toMatch(
    new RegExp(`^${id()} +incomplete +oss +1 +2 +1 +\\d+ \\w+( +–)?$`, "m"),
  );
  const logs = await containers().run([
    "logs",
    "-c",
    id(),
    "--output-dir",
    join(containers().folder, "logs"),
  ]);
  expect(logs.status).toBe(0);
  expect(await Bun.file(join(containers().folder, "logs", "agent_0.console.txt")).exists()).toBe(
    true,
  );
});

// Shows R40.
test("destroy removes everything, and a second time there is no such cluster", async () => {
  const destroyed = await containers().run(["destroy", "-c", id()]);
  expect({ status: destroyed.status, stdout: destroyed.stdout }).toEqual({
    status: 0,
    stdout: `${id()}\n`,
  });
  expect(await containers().things(id())).toEqual([]);
  expect(await containers().run(["destroy", "-c", id()])).toMatchObject({ status: 3, stdout: "" });
});
