/** Power over nodes, with a backend that only remembers what it was asked. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Backend } from "../../../src/backend/contract.ts";
import type { Power } from "../../../src/backend/power.ts";
import { clusterMasterConnection, sshConfig } from "../../../src/cluster/connections.ts";
import { type PowerAction, changePower } from "../../../src/cluster/power.ts";
import { ClusterError } from "../../../src/errors.ts";
import {
  type NodeRecord,
  type NodeState,
  nodeReference,
} from "../../../src/model/cluster-record.ts";
import { readEvents } from "../../../src/store/events.ts";
import { keepLastRecord } from "../../../src/store/last-record.ts";
import { type Clock, systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { openFixture, region } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { ownClock } from "../../support/install-machine-programs.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";

const sudo = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n';
/** Restarts in a moment. */
const systemctl =
  '#!/bin/sh\n[ "$2" = reboot ] && (sleep 0.5; sed -i "s/ 7 / 8 /" "$MACHINE/proc/1/stat") >/dev/null 2>&1 &\n';
const idle = "#!/bin/sh\n";

async function openCluster(
  programs: Readonly<Record<string, string>> = { systemctl },
  stopsClocks = false,
) {
  const stack = new AsyncDisposableStack();
  const scratch = stack.use(await scratchFolder());
  const machines = stack.use(
    await startMachines({ roles: ["master", "agent", "agent"], programs: { ...programs, sudo } }),
  );
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const calls: string[] = [];
  const states = new Map<string, NodeState>();
  const call =
    (name: string, state: NodeState) => async (_cluster: unknown, nodes: readonly NodeRecord[]) => {
      calls.push(`${name} ${nodes.map(nodeReference).join(",")}`);
      for (const node of nodes) states.set(nodeReference(node), state);
    };
  const power: { -readonly [Name in keyof Power]: Power[Name] } = {
    shutDown: call("shut down", "stopped"),
    cutPower: call("cut", "stopped"),
    start: call("start", "running"),
    pause: call("pause", "paused"),
    resume: call("resume", "running"),
    stopsClocks,
  };
  const backendFails = { now: false };
  const nodesNow = () =>
    cluster.nodes.map((node) => ({
      ...node,
      state: states.get(nodeReference(node)) ?? node.state,
    }));
  const backend = {
    name: "container",
    find: async () => {
      if (backendFails.now) throw new ClusterError("cloud-failed", "EC2 does not answer.");
      return { ...cluster, nodes: nodesNow() };
    },
    local: { power },
  } as unknown as Backend<unknown>;
  const environment = { PATH: process.env["PATH"] ?? "", HOME: scratch.path };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  const change = async (action: PowerAction, nodes: readonly string[], isForced = false) =>
    changePower({ ...runtime, signal }, backend, {
      clusterId: cluster.id,
      action,
      nodes,
      isForced,
    });
  const rebooting = async (nodes: readonly string[], clock: Clock = systemClock) => {
    for (const machine of machines.machines)
      await machine.write("proc/1/stat", `${"x ".repeat(21)}7 x\n`);
    const request = { clusterId: cluster.id, action: "restart", nodes, isForced: false } as const;
    const inCloud = { ...backend, local: undefined } as unknown as Backend<unknown>;
    await changePower({ ...runtime, clock, signal }, inCloud, request);
  };
  const own = {
    cluster,
    machines: machines.machines,
    states,
    power,
    backendFails,
    calls,
    environment,
    scratch,
    stack,
  };
  return { ...own, rebooting, change };
}

/** A minute passes at each pause. */
function hurriedClock(): Clock {
  const time = { ms: Date.now() };
  const sleep = async (_ms: number, inner: AbortSignal): Promise<void> => {
    inner.throwIfAborted();
    time.ms += 60_000;
    await Bun.sleep(10);
  };
  return { now: () => time.ms, sleep };
}

describe.skipIf(machinesLack !== undefined)(`power (${machinesLack ?? "here"})`, () => {
  test("closes the kept logins to its nodes, and no others", async () => {
    const { cluster, calls, change, environment, scratch, stack } = await openCluster();
    await using _ = stack;
    const config = join(scratch.path, "ssh_config");
    await Bun.write(config, await sshConfig(cluster));
    const kept = await Promise.all(
      cluster.nodes.map(
        async (node) => (await clusterMasterConnection(cluster, node, environment))!,
      ),
    );
    for (const [index, each] of kept.entries())
      each.open(config, nodeReference(cluster.nodes[index]!));
    await until("both logins are kept", async () =>
      (await Promise.all(kept.map(async (each) => each.isAlive()))).every(Boolean),
    );
    await change("stop", ["agent_0"], true);
    expect(calls).toEqual(["cut agent_0"]);
    expect(await Promise.all(kept.map(async (each) => each.isAlive()))).toEqual([
      true,
      false,
      true,
    ]);
    await change("pause", ["all"]);
    expect(kept.map((each) => each.hasSocket())).toEqual([false, false, false]);
  });

  test("leaves a line in the journals of running nodes, and events", async () => {
    const logger = '#!/bin/sh\necho "$*" >>"$MACHINE/journal"\n';
    const { cluster, change, machines, states, stack } = await openCluster({ logger });
    await using _ = stack;
    states.set("agent_1", "stopped");
    await change("stop", ["all"], true);
    const journals = machines.map(async (machine) => machine.read("journal").catch(() => ""));
    expect(await Promise.all(journals)).toEqual([
      "-t cluster-e2e -- Cut the power\n",
      "-t cluster-e2e -- Cut the power\n",
      "",
    ]);
    const power = { kind: "power", action: "Cut the power", nodes: ["master_0", "agent_0"] };
    const events = await readEvents(cluster.directory);
    expect(events.filter(({ kind }) => kind === "power")).toMatchObject([
      { ...power, course: "begun" },
      { ...power, course: "done" },
    ]);
    expect(events.filter(({ kind }) => kind === "node")).toHaveLength(3);
  });

  test.each<[PowerAction, boolean, readonly string[]]>([
    ["stop", false, ["resume agent_1", "shut down master_0,agent_1"]],
    ["stop", true, ["cut master_0,agent_1"]],
    ["start", false, ["start agent_0", "resume agent_1"]],
    [
      "restart",
      false,
      ["resume agent_1", "shut down master_0,agent_1", "start master_0,agent_0,agent_1"],
    ],
    ["restart", true, ["cut master_0,agent_1", "start master_0,agent_0,agent_1"]],
    ["pause", false, ["pause master_0"]],
    ["resume", false, ["resume agent_1"]],
  ])(
    "%s, by force: %p, changes only nodes that are not in that state",
    async (action, isForced, expected) => {
      const { cluster, calls, change, states, stack } = await openCluster();
      await using _ = stack;
      states.set("agent_0", "stopped").set("agent_1", "paused");
      const hasBooted = action === "start" || action === "restart";
      expect(await change(action, ["all"], isForced)).toMatchObject({
        cluster: { id: cluster.id },
        hasBooted,
      });
      expect(calls).toEqual([...expected]);
      await change(action, ["master_0"], isForced);
      expect(calls.slice(expected.length).filter((each) => !each.endsWith(" master_0"))).toEqual(
        [],
      );
    },
  );

  test.each<PowerAction>(["pause", "resume"])(
    "to %s a stopped node is an error, and changes no other",
    async (action) => {
      const { calls, change, states, stack } = await openCluster();
      await using _ = stack;
      states.set("agent_0", "stopped").set("agent_1", "paused");
      const failure = await failureOf(change(action, ["all", "agent_0"]));
      expect(failure).toMatchObject({
        id: "node-stopped",
        facts: { node: "agent_0", state: "stopped" },
      });
      expect(calls).toEqual([]);
    },
  );

  test("clocks that stood still are set, and one that can't be is an error", async () => {
    const { machines, change, states, stack } = await openCluster(ownClock, true);
    await using _ = stack;
    const hourNs = 3_600_000_000_000;
    await machines[1]!.write("run/clock", String(-hourNs));
    states.set("agent_0", "paused");
    await change("resume", ["agent_0"]);
    expect(Math.abs(Number(await machines[1]!.read("run/clock")))).toBeLessThan(hourNs / 60);
    await machines[1]!.write("stuck", "");
    await machines[1]!.write("run/clock", String(-hourNs));
    states.set("agent_0", "paused");
    const failure = await failureOf(change("resume", ["agent_0"]));
    expect(failure).toMatchObject({ id: "remote-command-failed" });
    expect(failure.message).toBe("The clock of agent_0 cannot be set: date does not set it.");
  });

  test("nodes without power restart by themselves", async () => {
    const { cluster, machines, rebooting, stack } = await openCluster();
    await using _ = stack;
    await rebooting(["agent_0"]);
    expect(await machines[1]!.read("proc/1/stat")).toContain(" 8 ");
    expect(await machines[0]!.read("proc/1/stat")).toContain(" 7 ");
    expect(cluster.nodes).toHaveLength(3);
  });

  test("a node that does not restart is an error that says so, in the end", async () => {
    const { rebooting, stack } = await openCluster({ systemctl: idle });
    await using _ = stack;
    const failure = await failureOf(rebooting(["agent_0"], hurriedClock()));
    expect(failure).toMatchObject({ id: "connection-failed", facts: { node: "agent_0" } });
    expect(failure.message).toBe("agent_0 is not back: it has not restarted yet");
    expect(failure.hint).toContain("logs");
  });

  test("a node that ends instead of restarting is an error at once, and a silent backend is none", async () => {
    const { rebooting, states, backendFails, stack } = await openCluster({ systemctl: idle });
    await using _ = stack;
    const failing = failureOf(rebooting(["agent_0"]));
    await Bun.sleep(1_000);
    backendFails.now = true;
    await Bun.sleep(2_000);
    states.set("agent_0", "ended");
    backendFails.now = false;
    expect(await failing).toMatchObject({ id: "machine-failed", facts: { node: "agent_0" } });
  });

  test("a node that refuses to restart says why", async () => {
    const { rebooting, stack } = await openCluster({
      systemctl: "#!/bin/sh\necho 'Access denied' >&2\nexit 1\n",
    });
    await using _ = stack;
    const failure = await failureOf(rebooting(["agent_0"]));
    expect(failure).toMatchObject({ id: "remote-command-failed" });
    expect(failure.message).toContain("Access denied");
  });

  test.each<PowerAction>(["start", "restart", "resume"])(
    "%s ends once a login fails and the node's console shows that it will never come",
    async (action) => {
      const { machines, states, change, power, stack } = await openCluster();
      await using _ = stack;
      await machines[1]!.close();
      states.set("agent_0", action === "resume" ? "paused" : "stopped");
      power.assertBoots = async (_cluster, node) => {
        if (nodeReference(node) === "agent_0")
          throw new ClusterError("machine-failed", "its kernel panicked.");
      };
      const failure = await failureOf(change(action, ["all"]));
      expect(failure).toMatchObject({ id: "machine-failed", message: "its kernel panicked." });
    },
  );

  test("a node that stops while its login is awaited is an error at once", async () => {
    const { machines, states, change, stack } = await openCluster();
    await using _ = stack;
    await machines[1]!.close();
    const failing = failureOf(change("start", ["all"]));
    await Bun.sleep(300);
    states.set("agent_0", "stopped");
    expect(await failing).toMatchObject({ id: "node-stopped", facts: { node: "agent_0" } });
  });
});

describe("a restart in the cloud", () => {
  const reboot = "systemctl.*reboot";

  async function openCloud() {
    const stack = new AsyncDisposableStack();
    const fixture = stack.use(await openFixture({}));
    const { cloud, runtime, told } = fixture;
    const backend = await fixture.open(region);
    const counts = { master: 1, agent: 0, public_agent: 0 };
    const cluster = await fixture.create(backend, fixture.request("default", { counts }), signal);
    const boots = (number: number) =>
      cloud.answers.replace([
        { pattern: reboot },
        { pattern: "random/boot_id", stdout: `boot-${number} 7\n` },
      ]);
    boots(1);
    const omit = (times: number | "always" = "always") =>
      cloud.faults.add({
        action: "DescribeInstances",
        when: "after",
        times,
        change: "no-machines",
      });
    const request = {
      clusterId: "default",
      action: "restart",
      nodes: ["all"],
      isForced: false,
    } as const;
    const restart = async (clock: Clock = systemClock) =>
      changePower({ ...runtime, clock, signal }, backend, request);
    const begins = async () =>
      until("the node restarts", async () =>
        cloud.answers.begun.some((each) => new RegExp(reboot).test(each)),
      );
    return { stack, told, boots, omit, restart, begins, cluster };
  }

  test("goes on while the cloud's answers omit the cluster, and says what it waits for", async () => {
    const { stack, told, boots, omit, restart, begins } = await openCloud();
    await using _ = stack;
    const restarting = restart();
    restarting.catch(() => {});
    await begins();
    const omitted = omit();
    const waiting = 'waiting: waiting for cloud to list cluster "default" again';
    await Promise.race([restarting, until("it waits", async () => told.includes(waiting))]);
    expect(omitted.hasStruck()).toBe(true);
    await omitted[Symbol.asyncDispose]();
    // The questions to the node are told in between.
    const lastWait = () => told.findLast((text) => text.startsWith("waiting: "));
    await until("it no longer waits", async () => lastWait() === "waiting: ");
    boots(2);
    expect(await restarting).toMatchObject({ cluster: { id: "default" }, hasBooted: true });
  });

  test("begins although an answer omits the cluster, if this computer knows that it runs", async () => {
    const { stack, boots, omit, restart, begins, cluster } = await openCloud();
    await using _ = stack;
    omit(1);
    expect(await failureOf(restart())).toMatchObject({ id: "cluster-not-found" });
    await keepLastRecord(cluster);
    omit(1);
    const restarting = restart();
    await Promise.race([restarting, begins()]);
    boots(2);
    expect(await restarting).toMatchObject({ hasBooted: true });
  });

  test("ends if the cluster stays away for two minutes", async () => {
    const { stack, omit, restart, begins } = await openCloud();
    await using _ = stack;
    const time = { passedMs: 0, hurries: false };
    // A minute passes at each pause of those who look at the cluster; the looks at the node take no time.
    const clock: Clock = {
      now: () => Date.now() + time.passedMs,
      sleep: async (ms, inner) => {
        if (time.hurries && ms >= 2_000) time.passedMs += 60_000;
        await systemClock.sleep(20, inner);
      },
    };
    const failing = failureOf(restart(clock));
    await begins();
    omit();
    time.hurries = true;
    expect(await failing).toMatchObject({ id: "cluster-not-found" });
    expect(time.passedMs).toBeWithin(120_000, 300_000);
  });
});
