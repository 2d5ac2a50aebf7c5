/** What Docker promises, as all backends do, on nodes without the platform's packages; and what only containers do. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { until } from "../support/until.ts";
import { browserLack, look, startBrowser } from "./support/browser.ts";
import { commandsOf, testKilledNode, testRemoval } from "./support/conformance.ts";
import { testContainerConformance } from "./support/container-conformance.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { docker, bareNodeImage, startTestContainers } from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);
const subject = testContainerConformance(containers, artifact, { nodeImage: bareNodeImage });
const { id } = subject;
const { ask, nodeOf, on } = commandsOf(subject);

test("where no distribution is named, the one that suits this computer's cgroups is taken, and said", async () => {
  const words = [
    "create",
    "--variant",
    "oss",
    "--dry-run",
    "-c",
    containers().id("unnamed"),
    artifact(),
  ];
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
  const others = expected === "debian-12" ? "" : `, those of release artifacts ${expected}`;
  expect((await containers().run(["doctor"])).stdout).toMatch(
    new RegExp(`cgroups .*nodes run debian-12 by default${others}`),
  );
});

test("a node is a machine: mounts that services see, programs in memory, a kernel's log, and a loop device where one is given", async () => {
  const programs = "for each in /run /dev/shm; do cp /bin/true $each/own; $each/own || exit; done";
  const loop = "[ ! -e /dev/loop-control ] || losetup --find >/dev/null";
  const mounts = "findmnt --noheadings --output PROPAGATION /";
  expect(await on("agent_0", `${programs}; ${loop} && : </dev/kmsg && ${mounts}`)).toContain(
    "shared",
  );
});

test("a node is a machine: shared memory, ports, names in both directions, IPv6 on loopback, packets that get out", async () => {
  const run = async (line: string) => on("agent_0", line);
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

test("a node's container has its name", async () => {
  const { containerName } = await nodeOf("agent_1");
  expect(await docker(["exec", containerName!, "hostname"])).toBe("agent-1");
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
  const agent = await nodeOf("agent_0");
  const flood =
    "head -c 12000000 /dev/zero | tr '\\0' x | fold -w 120 >/dev/console; echo the newest line >/dev/console";
  expect((await ask(["run", "--node", "agent_0", flood])).status).toBe(0);
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

test.each(["systemctl reboot", "systemctl reboot --force", "reboot -ff"])(
  "a node that reboots itself with %s comes back by itself at its address, without what was in memory, with its kernel settings",
  async (reboot) => {
    const before = await nodeOf("agent_1");
    const bootOf = async () =>
      docker(["inspect", "--format={{.State.StartedAt}} {{.State.Status}}", before.id]);
    const firstBoot = await bootOf();
    const settings = "echo net.ipv4.ip_nonlocal_bind=1 >/etc/sysctl.d/own.conf; sync;";
    await ask(["run", "--node", "agent_1", `${settings} touch /run/mark /var/mark; ${reboot}`]);
    await until("the engine has started it again", async () => {
      const now = await bootOf();
      return now !== firstBoot && now.endsWith(" running");
    });
    await until("it accepts a login", async () => {
      const marks =
        "[ ! -e /run/mark ] && cat /var/mark && sysctl net.ipv4.ip_nonlocal_bind | grep 1";
      return (await ask(["run", "--node", "agent_1", marks])).status === 0;
    });
    expect(await nodeOf("agent_1")).toEqual(before);
    const waited = await ask(["wait"]);
    expect({ status: waited.status }, waited.stderr).toEqual({ status: 0 });
  },
);

test.each(["systemctl poweroff", "systemctl poweroff --force", "systemctl halt --force"])(
  "a node that switches itself off with %s stays off until somebody starts it",
  async (end) => {
    await ask(["run", "--node", "agent_1", end]);
    const stateNow = async () => (await nodeOf("agent_1")).state;
    await until("it is off", async () => (await stateNow()) === "stopped");
    // By then, the engine would have started it.
    await Bun.sleep(3_000);
    expect(await stateNow()).toBe("stopped");
    expect((await ask(["node", "start", "agent_1"])).status).toBe(0);
    const waited = await ask(["wait"]);
    expect({ status: waited.status }, waited.stderr).toEqual({ status: 0 });
  },
);

testKilledNode(subject);
testRemoval(subject);
