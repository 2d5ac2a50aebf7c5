/** What virtual machines promise, as all backends do, from the download of their image on; and what only they do. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import {
  commandsOf,
  createWords,
  type LocalSubject,
  testConformance,
  testKilledNode,
  testRemoval,
} from "./support/conformance.ts";
import * as copies from "./support/copies.ts";
import { expectEqualClocks } from "./support/node-clocks.ts";
import { testCopy, testSnapshots } from "./support/snapshot-conformance.ts";
import { continueElsewhere, continueFailed } from "./support/vm-snapshots.ts";
import { buildVmImage, startTestVms, type TestVms } from "./support/test-vms.ts";
import { serveOnLoopback } from "../support/loopback-server.ts";
import { until } from "../support/until.ts";

const state: {
  vms?: TestVms;
  artifact?: string;
  image?: string;
  server?: Bun.Server<undefined>;
  sum?: string;
  lifetimeMinutes?: number;
} = {};
const vms = (): TestVms => state.vms!;

beforeAll(async () => {
  state.vms = await startTestVms();
  state.artifact = await buildArtifact("oss", vms().folder);
  const image = await buildVmImage();
  state.image = image;
  state.sum = (await Bun.$`sha256sum ${image}`.text()).split(" ")[0]!;
  state.server = serveOnLoopback(() => new Response(Bun.file(image)));
});

afterAll(async () => {
  await state.server?.stop(true);
  await state.vms?.[Symbol.asyncDispose]();
});

const options = (sum = state.sum!): readonly string[] => [
  ..."--variant oss --public-agents 0 --memory 768 --cpus 1 --disk-size 4g".split(" "),
  "--image",
  `${state.server!.url.href}disk.qcow2`,
  "--image-sha256",
  sum,
];

/** The machines, or what is left of them. */
async function thingsOf(cluster: string): Promise<readonly string[]> {
  const machines = await vms().machines(cluster);
  if (machines.size > 0) return [...machines.keys()];
  const kept = /machines|disk|cluster\.json|snapshots/;
  return (await vms().files(cluster)).filter((name) => kept.test(name));
}

const subject: LocalSubject = {
  backend: vms,
  artifact: () => state.artifact!,
  id: () => vms().id("flow"),
  program: "cluster-vm",
  options,
  agents: 1,
  publicAgents: 0,
  checks:
    "qemu,accelerator,qemu features,firmware,memory,disk,image cache,templates,metadata service,leftovers",
  plan: ["disk.qcow2 (", "768 MB of memory, 1 CPU, a disk of up to 4096 MB"],
  things: thingsOf,
  // With the process of the private network.
  size: 3,
  kill: async () => {
    const machines = async () => vms().machines(id());
    process.kill((await machines()).get("agent_0")!, "SIGKILL");
    await until("its QEMU has ended", async () => !(await machines()).has("agent_0"));
  },
  killed: /its QEMU was killed/,
};
const { id } = subject;
const { ask, on } = commandsOf(subject);

test("without the image, a dry run says that it will be downloaded; one with another sum is refused", async () => {
  const environment = { XDG_CACHE_HOME: join(vms().folder, "empty-cache") };
  const create = async (sum?: string, ...more: readonly string[]) =>
    vms().run(["create", ...options(sum), ...more, "-c", vms().id("first"), state.artifact!], {
      environment,
    });
  expect((await create(undefined, "--dry-run")).stdout).toContain(
    "disk.qcow2 (will be downloaded)",
  );
  const ran = await create("0".repeat(64));
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain(state.sum!);
  expect(ran.stderr).toContain("[image-not-found]");
  expect(await thingsOf(vms().id("first"))).toEqual([]);
});

testConformance(subject);

test("nodes are copies of one template, and have nothing in common that tells machines apart", async () => {
  const listed = await vms().run(["templates", "list"]);
  expect(listed.stdout).toMatch(new RegExp(`^[0-9a-f]{16} .*${id()} .*, 768 MB, 1 CPU, `, "m"));
  expect((await vms().run(["templates", "remove"])).stdout).toBe("");
  await copies.expectDifferentCopies(vms(), id());
});

const short = (): string => vms().id("short");

/** How long this computer takes to boot a machine, as the first creation has found. */
async function bootMinutes(): Promise<number> {
  const machines = dirname(await vms().machineFolder(id(), "master_0"));
  const lines = (await Bun.file(join(machines, "..", "events.jsonl")).text()).split("\n");
  const [begun = 0, ended = 0] = lines
    .filter((line) => line.includes("Make a template of the machines"))
    .map((line) => Date.parse((JSON.parse(line) as { readonly at: string }).at));
  expect(ended).toBeGreaterThan(begun);
  return (ended - begun) / 60_000;
}

test("a cluster may have a lifetime, and be offline; it begins beside the other one", async () => {
  state.lifetimeMinutes = 10 + Math.ceil(4 * (await bootMinutes()));
  const own = `--agents 0 --offline --lifetime ${state.lifetimeMinutes}m`.split(" ");
  const created = await vms().run([...createWords(subject, short()), ...own]);
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${short()}\n`,
  });
  expect(created.stderr).toMatch(/The cluster ends \d\d:\d\d UTC \(in \d+ min\)/);
});

// Shows R138.
test("a copy is the same node after a power cut; one with a lifetime keeps it when it restarts, and stays offline", async () => {
  const own =
    "cat /etc/machine-id /etc/hostname /sys/class/net/eth1/address; readlink /var/lib/cloud/instance";
  const deadline =
    "systemctl is-active cluster-e2e-deadline; grep -o 'deadline [0-9]*' /etc/systemd/system/cluster-e2e-deadline.service";
  const bootId = "cat /proc/sys/kernel/random/boot_id";
  const look = async (cluster: string, script: string) => {
    const node = cluster === id() ? "agent_0" : "master_0";
    return (await vms().run(["run", "-c", cluster, "--no-test-env", "--node", node, script]))
      .stdout;
  };
  const [before, boots, end] = [
    await look(id(), own),
    [await look(id(), bootId), await look(short(), bootId)],
    await look(short(), deadline),
  ];
  expect(end).toMatch(/^active\n.*\d{10}/);
  const power = async (cluster: string, ...words: readonly string[]) => {
    const ended = await vms().run(["node", ...words, "-c", cluster]);
    expect(ended.status, ended.stderr).toBe(0);
  };
  const cut = async () => {
    await power(id(), "stop", "--force", "agent_0");
    await power(id(), "start", "agent_0");
  };
  await Promise.all([cut(), power(short(), "restart", "master_0")]);
  expect(await look(id(), own)).toBe(before);
  expect(await look(short(), deadline)).toBe(end);
  for (const [place, cluster] of [id(), short()].entries())
    expect(await look(cluster, bootId)).not.toBe(boots[place]!);
  await copies.expectOffline(vms(), { online: id(), offline: short() }, state.server!.port!);
});

test("nothing in a template, and no key of another cluster of its copies, opens a copy", async () => {
  await copies.expectClosedCopies(vms(), id(), short());
});

test("nodes see each other at their private addresses, and no host key is in what their processes can read", async () => {
  const { nodes } = await vms().inspect(id());
  expect(nodes.map(({ reference, privateAddress }) => [reference, privateAddress])).toEqual([
    ["master_0", "10.93.0.2"],
    ["agent_0", "10.93.0.3"],
  ]);
  expect(await ask(["run", "ping -c1 -W5 agent-0 >/dev/null"])).toMatchObject({ status: 0 });
  const lookAtSeed =
    "sudo mount -o ro /dev/disk/by-label/cidata /mnt && sudo grep -c 'PRIVATE KEY' /mnt/user-data";
  expect(await on("master_0", `${lookAtSeed}; sudo umount /mnt`)).toBe("0");
});

test("machines have the size that was asked for", async () => {
  const [memory, disk] = (
    await on("master_0", "free -m | awk '/Mem:/{print $2}'; df -m / | awk 'END{print $2}'")
  )
    .split("\n")
    .map(Number);
  expect(memory!).toBeWithin(600, 769);
  expect(disk!).toBeWithin(3500, 4097);
});

const fault = (line: string) => vms().run(["fault", ...line.split(" "), "-c", id()]);

test("faults that only machines of their own can have: a slow network, a wrong clock, a full disk", async () => {
  const slow = await fault("network agent_0 --delay 300ms --for 30m");
  expect(slow).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/a round trip takes 3\d\d(?:\.\d+)? ms/),
  });
  expect(await fault("clock agent_0 --offset +1h --for 30m")).toMatchObject({ status: 0 });
  expect(await fault("disk agent_0 --fill /var/lib --for 30m")).toMatchObject({ status: 0 });
  const onAgent = async (line: string) => on("agent_0", line);
  expect(Number(await onAgent("date +%s")) - Date.now() / 1000).toBeWithin(3_000, 4_000);
  const write = "head -c 100000 /dev/zero >/root/file && rm /root/file; echo $?";
  expect(await onAgent(write)).not.toBe("0");
  const healed = await fault("heal agent_0");
  expect(healed).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^(?:[0-9a-f]{8}\n){3}$/),
  });
  expect(Number(await onAgent("date +%s")) - Date.now() / 1000).toBeWithin(-300, 300);
  expect(await onAgent(write)).toBe("0");
  const left =
    "tc qdisc show | grep -c e2e; ls /etc/tmpfiles.d; ls -A /var/lib | grep cluster-e2e-fault";
  expect(await onAgent(left)).toBe("0");
});

test("a partition drops what one machine sends, or what both send, until it is healed", async () => {
  const counts = async () =>
    Promise.all(
      ["agent_0", "master_0"].map((node) =>
        on(node, "awk '/^Icmp: [0-9]/ { print $10 }' /proc/net/snmp"),
      ),
    );
  /** How many pings arrive: the master's at the agent, and the agent's at the master. */
  const arriving = async () => {
    const before = await counts();
    await Promise.all([
      on("master_0", "ping -c1 -W2 agent-0"),
      on("agent_0", "ping -c1 -W2 master-0"),
    ]);
    return (await counts()).map((now, index) => Number(now) - Number(before[index]));
  };
  const oneWay = await fault("partition --between agent_0 --and master_0 --one-way --for 30m");
  expect(oneWay).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("0 of 1 ping answered, before: 1 of 1 ping answered"),
  });
  expect(await arriving()).toEqual([1, 0]);
  const healed = expect.stringMatching(/^[0-9a-f]{8}\n$/);
  expect(await fault("heal")).toMatchObject({ status: 0, stdout: healed });
  const both = await fault("partition --between agent_0 --for 30m");
  expect(both).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("0 of 2 pings answered"),
  });
  expect(await arriving()).toEqual([0, 0]);
  expect(await fault("heal")).toMatchObject({ status: 0, stdout: healed });
  expect(await arriving()).toEqual([1, 1]);
  expect([await on("agent_0", "nft list tables"), await on("master_0", "nft list tables")]).toEqual(
    ["", ""],
  );
  // Slurm may have given up the agent meanwhile.
  await on("agent_0", "systemctl restart slurmd");
  expect(await ask(["wait", "--timeout", "5m"])).toMatchObject({ status: 0 });
});

const identity = "cat /proc/sys/kernel/random/boot_id";
testSnapshots(subject, {
  plant: () =>
    on("agent_0", `${identity}; nohup sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 & echo $!`),
  // Nothing boots, and clocks are right.
  check: async (planted, { stderr }) => {
    await expectEqualClocks(vms(), id(), stderr);
    expect((await ask(["run", "srun", "-N1", "hostname"])).stdout).toBe("agent-0\n");
    await copies.expectOtherUuids(vms(), id(), "installed");
    const [bootId, pid] = planted.split("\n").toSorted((one, other) => other.length - one.length);
    expect(await on("agent_0", `${identity}; kill -0 ${pid} && echo runs`)).toBe(`${bootId}\nruns`);
    const asked = Date.now() / 1000;
    expect(Number(await on("agent_0", "date +%s"))).toBeWithin(asked - 10, Date.now() / 1000 + 10);
  },
});

test("clocks agree to 50 ms after a pause, and after this computer slept", async () => {
  await vms().run(["node", "pause", "-c", id(), "agent_0"]);
  const resumed = await vms().run(["node", "resume", "-vv", "-c", id(), "all"]);
  expect(resumed.status, resumed.stderr).toBe(0);
  await expectEqualClocks(vms(), id(), resumed.stderr);
  if (process.getuid?.() !== 0) return;
  await on("agent_0", "date -s '-90 seconds'");
  const ran = await vms().runAfterSleep(["run", "-vv", "-c", id(), "--no-test-env", "true"]);
  expect(ran.status, ran.stderr).toBe(0);
  await expectEqualClocks(vms(), id(), ran.stderr);
});

const copy = testCopy(subject);

test("a copy has nothing of its source's key, and leaves nothing over; --from takes no other size", async () => {
  const words = ["create", "--from", `${id()}:installed`, "--masters", "3", state.artifact!];
  expect(await commandsOf(copy).ask(words)).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(
      /--masters: cannot be combined with --from[^]*PLATFORM: cannot be combined with/,
    ),
  });
  const { sshKey } = await vms().inspect(id());
  const [, key] = (await Bun.$`ssh-keygen -y -f ${sshKey.path}`.text()).split(" ");
  const search = `sudo grep -rlF ${key} /root /home /etc/ssh`;
  expect(await commandsOf(copy).on("master_0", search)).toBe("");
  expect((await vms().run(["doctor"])).stdout).not.toContain("Left over");
});

testRemoval(copy);

// Shows R121.
test("on another computer, the snapshot's file becomes a cluster of that user, in which jobs run", async () =>
  continueElsewhere(vms(), id()));

// Shows R121.
test("once saves a cluster in which its command failed, and from the file its processes continue", async () =>
  continueFailed(vms(), id()));

// Shows R41.
test("at the end of its lifetime the other cluster ends by itself, and the next list removes the rest", async () => {
  const hasEnded = async () => !(await vms().machines(short())).has("master_0");
  const limitMs = (state.lifetimeMinutes! + 10) * 60_000;
  await until("the machine has ended", hasEnded, { limitMs, everyMs: 1_000 });
  expect((await vms().machines(short())).size).toBe(0);
  // On a slow computer, the creation of another cluster has removed it already.
  const isLeft = (await vms().files(short())).some((name) => name.endsWith("disk.qcow2"));
  // A node's clock may be a little ahead of this machine's.
  let listed = await vms().run(["list"]);
  await until("the list is empty of it", async () => {
    if (!listed.stdout.includes(short())) return true;
    listed = await vms().run(["list"]);
    return false;
  });
  if (isLeft)
    expect(listed.stderr).toContain(`Removed what is left of cluster "${short()}", which ended`);
  expect(listed.stdout).not.toContain(short());
  expect(
    (await vms().files(short())).filter((name) => /machines|disk|cluster\.json|id_/.test(name)),
  ).toEqual([]);
});

testKilledNode(subject);

test("the console of a machine begins with its kernel, and doctor misses the process of its private network", async () => {
  const console = join(vms().folder, "logs", "agent_0.console.txt");
  expect(await Bun.file(console).text()).toContain("Linux version");
  process.kill((await vms().machines(id())).get("network")!, "SIGKILL");
  await until("the network has ended", async () => !(await vms().machines(id())).has("network"));
  expect((await vms().run(["doctor"])).stdout).toContain(
    "the process of its private network has ended",
  );
});

test("destroy asks for the sake of the snapshot", async () => {
  expect((await ask(["destroy"])).status).toBe(2);
});

testRemoval(subject);
