/** Faults on one small cluster of containers: each ends, whatever becomes of the program and of the nodes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { type TestContainers, docker, startTestContainers } from "./support/test-containers.ts";
import { until } from "../support/until.ts";

const state: { containers?: TestContainers } = {};
const containers = (): TestContainers => state.containers!;
const id = (): string => containers().id("faults");
const words = (line: string): readonly string[] => [...line.split(" "), "-c", id()];
const fault = (line: string) => containers().run(["fault", ...words(line)]);
const expectFault = async (line: string, status: number, said: string) =>
  expect(await fault(line)).toMatchObject({ status, stderr: expect.stringContaining(said) });
const onNode = async (node: string, line: string) =>
  containers().run(["run", "-c", id(), "--no-test-env", "--node", node, line]);

/** Whether the agent's packets reach the master. */
const isReachable = async (): Promise<boolean> =>
  (await onNode("agent_0", "ping -c1 -W1 master-0 >/dev/null")).status === 0;

async function faults(): Promise<readonly string[]> {
  const { stdout } = await fault("list --output json");
  return (
    JSON.parse(stdout) as { readonly faults: readonly { readonly kind: string }[] }
  ).faults.map(({ kind }) => kind);
}

beforeAll(async () => {
  state.containers = await startTestContainers();
  const image = await Bun.$`${join(repository, "test/machine-image/with-packages")} faults nftables`
    .quiet()
    .text();
  const platform = join(containers().folder, "platform");
  await mkdir(platform);
  await Bun.write(join(platform, "platform.yaml"), 'name: nothing\nversion: "1.0"\n');
  for (const name of ["install", "check"])
    await writeFile(join(platform, name), "#!/bin/sh\n", { mode: 0o755 });
  const create = words("create --wait --masters 1 --agents 1 --public-agents 0");
  const created = await containers().run([...create, "--node-image", image.trim(), platform]);
  expect(created.status, created.stderr).toBe(0);
});

afterAll(async () => {
  await state.containers?.run(["destroy", ...words("--yes")]);
  await state.containers?.[Symbol.asyncDispose]();
});

test("the nodes end a fault whose program was killed", async () => {
  const killed = containers().start([
    "fault",
    ...words("partition --between agent_0 --for 15s --wait"),
  ]);
  await killed.said("The fault shows");
  killed.interrupt("SIGKILL");
  await killed.ended;
  await until("the nodes have healed the fault", async () => (await faults()).length === 0);
  expect(await isReachable()).toBe(true);
});

test("a partition cuts nodes off from each other, not from here; list and inspect name it, and Ctrl-C heals it", async () => {
  const interrupted = containers().start([
    "fault",
    ...words("partition --between agents --and masters --for 10m --wait"),
  ]);
  await interrupted.said("The fault shows");
  expect([await faults(), await isReachable()]).toEqual([["partition"], false]);
  expect(await containers().run(["inspect", "-c", id()])).toMatchObject({
    stdout: expect.stringContaining("partition between agent_0 and master_0, until "),
  });
  interrupted.interrupt("SIGINT");
  expect(await interrupted.ended).toMatchObject({
    signal: "SIGINT",
    stderr: expect.stringContaining("Healed"),
  });
  const page = join(containers().folder, "report.html");
  const reported = await containers().run(["report", ...words(page)]);
  expect(reported.status, reported.stderr).toBe(0);
  const html = await readFile(page, "utf8");
  for (const part of ["partition between agent_0 and master_0", "create --wait", "<b>master_0</b>"])
    expect(html).toContain(part);
  expect([await faults(), await isReachable()]).toEqual([[], true]);
});

test("a partition cuts off whatever address the nodes send from, virtual ones and IPv6 too", async () => {
  const enable = "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6";
  const add = (last: number) =>
    `${enable}; ip addr add 192.0.2.${last}/24 dev eth0; ip -6 addr add fd00:e2e::${last}/64 dev eth0 nodad`;
  expect((await onNode("master_0", add(1))).status).toBe(0);
  expect((await onNode("agent_0", add(2))).status).toBe(0);
  const pings = ["192.0.2.1", "-I 192.0.2.2 master-0", "fd00:e2e::1"];
  const arrive = async (): Promise<readonly boolean[]> => {
    const tried: boolean[] = [];
    for (const each of pings)
      tried.push((await onNode("agent_0", `ping -c1 -W2 ${each} >/dev/null`)).status === 0);
    return tried;
  };
  expect(await arrive()).toEqual([true, true, true]);
  expect(await fault("partition --between agent_0 --for 10m")).toMatchObject({ status: 0 });
  expect(await arrive()).toEqual([false, false, false]);
  expect(await fault("heal")).toMatchObject({ status: 0 });
  expect(await arrive()).toEqual([true, true, true]);
  expect((await onNode("agent_0", "nft list tables | grep cluster_e2e")).stdout).toBe("");
});

test("a fault shows when the platform shows it, and is healed when every check passes", async () => {
  const cut = async (length: string, command: string) =>
    containers().run([
      "fault",
      ...words(`partition --between agent_0 --for ${length}`),
      "--until",
      command,
    ]);
  const begun = await cut("10m", "! ping -c1 -W1 agent-0");
  expect(begun.status, begun.stderr).toBe(0);
  expect(begun.stderr).toContain("; the platform shows it after");
  await expectFault("heal", 0, "; every node's check passes");
  const never = await cut("5s", "echo unaware; exit 1");
  expect(never).toMatchObject({ status: 4, stderr: expect.stringContaining("unaware") });
  expect([await faults(), await isReachable()]).toEqual([[], true]);
});

test("a restart of a node heals its part, and heal ends the others' part", async () => {
  await onNode("agent_0", "mkdir -p /data && mount -t tmpfs -o size=16m none /data");
  expect(await fault("disk agent_0 --fill /data --leave 1M --for 10m")).toMatchObject({
    status: 0,
  });
  expect(await fault("partition --between agent_0 --for 10m")).toMatchObject({ status: 0 });
  // What a power cut leaves in the way of a disk: systemd removes it at boot.
  await onNode("agent_0", "cp -p /etc/tmpfiles.d/cluster-e2e-fault-*.conf /root; mkdir /data-left");
  const agent = (await containers().inspect(id())).nodes.find(
    ({ reference }) => reference === "agent_0",
  )!;
  await docker(["kill", agent.id]);
  await docker(["start", agent.id]);
  await until("the node is back", async () => (await onNode("agent_0", "true")).status === 0);
  expect(
    (await onNode("agent_0", "ls /etc/tmpfiles.d; ls -A /data; nft list tables | grep cluster_e2e"))
      .stdout,
  ).toBe("");
  expect(await fault("heal agent_0")).toMatchObject({ status: 0, stdout: "" });
  expect(await fault("heal")).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^[0-9a-f]{8}\n$/),
  });
  expect([await faults(), await isReachable()]).toEqual([[], true]);
});

test("a service is killed and comes back, is paused, or is kept dead until it heals; Ctrl-C starts it again", async () => {
  const unit = (name: string, restart: string): string =>
    `printf '[Service]\\nExecStart=/bin/sleep 100000\\n${restart}' >/etc/systemd/system/${name}.service`;
  await onNode(
    "agent_0",
    `${unit("lasting", "Restart=always\\n")}; ${unit("frail", "")}; systemctl daemon-reload; systemctl start lasting frail`,
  );
  const unitState = async (name: string): Promise<string> =>
    (await onNode("agent_0", `systemctl is-active ${name}`)).stdout.trim();
  await expectFault(
    "process agent_0 --unit lasting --signal kill",
    0,
    "it came back by itself on 1 node, before: it runs",
  );
  await expectFault(
    "process agent_0 --unit lasting --signal stop --for 10m",
    0,
    "it is paused on 1 node",
  );
  for (const signal of ["stop", "kill"])
    await expectFault(
      `process agent_0 --unit lasting --signal ${signal}`,
      1,
      "lasting.service is paused already",
    );
  expect(await fault("heal")).toMatchObject({
    stderr: expect.stringContaining("it runs on 1 node"),
  });
  const interrupted = containers().start([
    "fault",
    ...words("process agent_0 --unit frail --for 10m --wait"),
  ]);
  await interrupted.said("The fault shows");
  await onNode("agent_0", "systemctl start frail");
  expect(await unitState("frail")).toBe("failed");
  interrupted.interrupt("SIGINT");
  expect(await interrupted.ended).toMatchObject({ signal: "SIGINT" });
  expect([await unitState("frail"), await faults()]).toEqual(["active", []]);
  await onNode("agent_0", "systemd-run --unit=passing sleep 100000");
  await onNode("agent_0", "systemd-run --collect --unit=forgotten sleep 100000");
  await expectFault("process agent_0 --unit passing --for 2s --wait", 0, "it runs on 1 node.");
  await expectFault("process agent_0 --unit forgotten", 1, "could not be started again");
  expect(await unitState("forgotten")).toBe("active");
  await expectFault("process agent_0 --unit nobody", 1, "nobody.service does not run on it");
});

test("what a node or a container lacks is an error that says so, and nothing is half done", async () => {
  await onNode("agent_0", "mv /usr/sbin/nft /root/nft");
  const lacking = await fault("partition --between agent_0");
  await onNode("agent_0", "mv /root/nft /usr/sbin/nft");
  expect(lacking).toMatchObject({
    status: 5,
    stderr: expect.stringMatching(/agent_0.*: nft and iptables are missing.*nftables/),
  });
  expect(await isReachable()).toBe(true);
  const clock = await fault("clock master_0 --offset +1h");
  expect(clock).toMatchObject({ status: 2, stderr: expect.stringContaining("[bad-usage]") });
  const disk = await fault("disk master_0 --fill /var/lib");
  expect(disk).toMatchObject({ status: 1, stderr: expect.stringContaining("tmpfs") });
  for (const [option, limit] of [
    ["--cpu 50%", "CPU limit"],
    ["--memory 80%", "memory limit"],
  ] as const) {
    await expectFault(`pressure agent_0 ${option}`, 1, `it is a container without a ${limit}`);
  }
  const slow = await fault("network agent_0 --delay 200ms --for 10m");
  // Not every kernel has netem.
  if (slow.status !== 0)
    expect(slow).toMatchObject({ status: 5, stderr: expect.stringContaining("sch_netem") });
  else expect(await fault("heal")).toMatchObject({ status: 0 });
  expect((await onNode("agent_0", "tc qdisc show | grep -c e2e")).stdout).toBe("0\n");
  expect(await faults()).toEqual([]);
});

test.each([
  ["partition"],
  ["partition master_0 --between agent_0"],
  ["network agent_0"],
  ["network --delay 1ms"],
  ["clock agent_0 --offset 1"],
  ["disk agent_0 --fill var"],
  ["disk agent_0 --fill / --delay 1s"],
  ["partition --between all --for 25h"],
  ["partition --between nobody"],
  ["list agent_0"],
])("fault %s is refused before anything is asked", async (line) => {
  expect(await fault(line)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("[bad-usage]"),
  });
});

test("a node that the cluster lacks, and a partition without a second side, are errors", async () => {
  await expectFault("heal agent_7", 3, "[node-not-found]");
  expect(await fault("partition --between all")).toMatchObject({ status: 2 });
});
