/** An upgrade of a small cluster whose machines are folders. */
import { describe, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { readVersions } from "../../../src/cluster/upgrade/read-versions.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { NodeRecord, NodeState, Role } from "../../../src/model/cluster-record.ts";
import { outside } from "../../../src/outside-text.ts";
import { type Clock, systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { longEnough } from "../../support/long-enough.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { until } from "../../support/until.ts";
import { type UpgradeMachines, upgradeMachines } from "../../support/upgrade-machines.ts";

const three: readonly Role[] = ["master", "agent", "agent"];
const begins = async ({ events }: UpgradeMachines): Promise<readonly string[]> =>
  (await events())
    .filter((line) => line.startsWith("begin "))
    .map((line) => line.slice("begin ".length));

/** A clock that runs forty times as fast. */
const fastClock: Clock = {
  now: () => Date.now() * 40,
  sleep: async (ms, signal) => systemClock.sleep(ms / 40, signal),
};

describe.skipIf(machinesLack !== undefined)(`an upgrade (${machinesLack ?? "here"})`, () => {
  test("goes from node to node, each of which is checked before the next one begins", async () => {
    await using all = await upgradeMachines(["master", "master", "agent", "public_agent"]);
    const { version, upgraded } = await all.upgrade();
    expect({ version, upgraded }).toEqual({
      version: "2.0",
      upgraded: ["master_0", "master_1", "agent_0", "public_agent_0"],
    });
    expect(await all.events()).toEqual(
      upgraded.flatMap((node) => [
        `begin ${node}`,
        `end ${node}`,
        `check ${node}`,
        `check ${node}`,
      ]),
    );
    expect(await all.versions()).toEqual(["2.0", "2.0", "2.0", "2.0"]);
    const [first] = all.machines.machines;
    await until(
      "the server has ended",
      async () =>
        !(await Bun.file(join(first!.folder, "var/lib/cluster-e2e/bootstrap-server.py")).exists()),
    );
    expect(
      await Bun.file(join(first!.folder, "var/lib/cluster-e2e/upgrade/artifact.sh")).exists(),
    ).toBe(false);
    expect(await first!.read("var/lib/cluster-e2e/installer/genconf/config.yaml")).toContain(
      "0".repeat(32),
    );
    expect(await first!.read("var/lib/cluster-e2e/upgrade.versions")).toBe("1.0\n2.0\n");
    expect(JSON.stringify(first!.commands)).not.toContain("hunter2");
  });

  test("upgrades several agents at once, but never two masters", async () => {
    await using all = await upgradeMachines(["master", "master", "agent", "agent"]);
    await all.upgrade({ parallel: 2, script: "sleep 0.5" });
    const events = (await all.events()).filter((line) => !line.startsWith("check "));
    expect(events.slice(0, 4)).toEqual([
      "begin master_0",
      "end master_0",
      "begin master_1",
      "end master_1",
    ]);
    expect(events.slice(4, 6).toSorted()).toEqual(["begin agent_0", "begin agent_1"]);
  });

  test("does nothing if all nodes have the version", async () => {
    await using all = await upgradeMachines(three);
    expect(await all.upgrade({ version: "1.0" })).toMatchObject({ version: "1.0", upgraded: [] });
    expect(await all.events()).toEqual([""]);
  });

  test("stops where a script fails, says what each node has, and continues there", async () => {
    await using all = await upgradeMachines(three);
    const script = '[ "$node" != agent_0 ] || { echo "no space left"; exit 3; }';
    const failure = await failureOf(all.upgrade({ script }));
    expect(failure.id).toBe("upgrade-failed");
    expect(failure.message).toBe(
      "The upgrade failed on agent_0: its upgrade script exited with status 3.\nThe last lines of its log:\n    no space left\n" +
        "Version 2.0: master_0. Version 1.0: agent_0, agent_1.",
    );
    expect(failure.hint).toContain("continues with the nodes that lack 2.0");
    expect(failure.facts).toMatchObject({
      node: "agent_0",
      versions: { master_0: "2.0", agent_0: "1.0", agent_1: "1.0" },
    });
    // What a node says may hold a secret, also in JSON.
    expect(ClusterError.marked(failure as ClusterError).facts).toMatchObject({
      log: [outside("no space left")],
      versions: { agent_0: outside("1.0") },
    });
    // What the new version has made may be in the log too.
    const reads = all.machines.machines[0]!.commands.filter((line) => line.includes("e2e-secrets"));
    expect(reads.length).toBeGreaterThan(1);
    expect((await all.upgrade()).upgraded).toEqual(["agent_0", "agent_1"]);
    expect(await begins(all)).toEqual(["master_0", "agent_0", "agent_0", "agent_1"]);
    expect(await all.versions()).toEqual(["2.0", "2.0", "2.0"]);
  });

  test("an interrupted one goes on by itself on its node, and the next run waits for it", async () => {
    await using all = await upgradeMachines(three);
    const gate = join(all.cluster.directory, "gate");
    const stop = new AbortController();
    const script = `[ "$node" != agent_0 ] || until [ -e ${gate} ]; do sleep 0.05; done`;
    const running = failureOf(all.upgrade({ script, signal: stop.signal }));
    await until("agent_0 is at work", async () => (await begins(all)).includes("agent_0"));
    const reason = new Error("interrupted");
    stop.abort(reason);
    expect((await running) as Error).toBe(reason);
    const said =
      "Version 2.0: master_0. Version 1.0: agent_0, agent_1. The upgrade of agent_0 may go on by itself.";
    expect(all.told.told).toContain(`${said} Run the same command again to continue.`);
    const again = all.upgrade();
    await systemClock.sleep(300, new AbortController().signal);
    await Bun.write(gate, "");
    expect((await again).upgraded).toEqual(["agent_1"]);
    expect(await begins(all)).toEqual(["master_0", "agent_0", "agent_1"]);
  });

  test("two at once exclude each other, and one whose program was killed is no obstacle", async () => {
    await using all = await upgradeMachines(["master", "agent"]);
    const gate = join(all.cluster.directory, "gate");
    const stop = new AbortController();
    const script = `[ "$node" != agent_0 ] || until [ -e ${gate} ]; do sleep 0.05; done`;
    const running = failureOf(all.upgrade({ script, signal: stop.signal }));
    await until("agent_0 is at work", async () => (await begins(all)).includes("agent_0"));
    const busy = await failureOf(all.upgrade());
    expect(busy).toMatchObject({
      id: "cluster-busy",
      facts: { cluster: all.cluster.id, node: "master_0" },
    });
    expect(busy.message).toMatch(
      /^Another upgrade of cluster "\S+" is running, since \d\d:\d\d:\d\d UTC\.$/,
    );
    // A lost connection is not the end of it.
    const locks = () =>
      all.machines.machines[0]!.commands.filter((line) => line.includes("e2e-upgrade-lock")).length;
    const before = locks();
    for (const machine of all.machines.machines) machine.cutConnections();
    await until("it takes the lock again", () => locks() > before);
    expect(await failureOf(all.upgrade())).toMatchObject({ id: "cluster-busy" });
    stop.abort(new Error("interrupted"));
    await running;
    await Bun.write(gate, "");
    expect((await all.upgrade()).upgraded).toEqual([]);
  });

  test("a node whose check doesn't pass ends it, and is checked again by the next run", async () => {
    await using all = await upgradeMachines(["master", "agent"]);
    const [master] = all.machines.machines;
    await master!.write("unready", "");
    const failure = await failureOf(all.upgrade({ clock: fastClock, timeoutMs: 600_000 }));
    expect(failure).toMatchObject({ id: "upgrade-failed" });
    expect(failure.message).toBe(
      "The upgrade failed on master_0: its check says: the disk is full.\nVersion 2.0: master_0. Version 1.0: agent_0.",
    );
    await rm(join(master!.folder, "unready"));
    expect((await all.upgrade()).upgraded).toEqual(["agent_0"]);
    expect(await begins(all)).toEqual(["master_0", "agent_0"]);
  });

  test("a node that ends meanwhile is an error that advises a repair, not a new cluster", async () => {
    await using all = await upgradeMachines(["master", "agent"]);
    const gate = join(all.cluster.directory, "gate");
    const script = `[ "$node" != agent_0 ] || until [ -e ${gate} ]; do sleep 0.05; done`;
    const now: { state: NodeState } = { state: "running" };
    const record = {
      get nodes() {
        return all.cluster.nodes.map((node) =>
          node.role === "agent" ? { ...node, ...now } : node,
        );
      },
    };
    const skew = { ms: 0 };
    const clock: Clock = { ...systemClock, now: () => Date.now() + skew.ms };
    const running = failureOf(all.upgrade({ script, record, clock }));
    await until("agent_0 is at work", async () => (await begins(all)).includes("agent_0"));
    now.state = "ended";
    // The machines are looked at again after 15 s.
    skew.ms = 15_000;
    const failure = await running;
    await Bun.write(gate, "");
    expect(failure).toMatchObject({
      id: "machine-failed",
      hint: "After a repair, run the same command again: it continues with the nodes that lack 2.0.",
    });
    expect(failure.message).toEndWith(
      "\nVersion 2.0: master_0. Version 1.0: agent_0. The upgrade of agent_0 may go on by itself.",
    );
  });

  test("versions are read from the nodes that answer and have one", async () => {
    await using all = await upgradeMachines(["master", "agent", "agent"]);
    const [, silent, bare] = all.machines.machines;
    await silent!.close();
    await rm(join(bare!.folder, "opt/mesosphere/etc/dcos-version.json"));
    const runtime = { environment: {}, clock: systemClock, progress: all.told.progress };
    const versions = await readVersions({ ...runtime, signal: neverAborted }, all.cluster);
    expect([...versions]).toEqual([["master_0", "1.0"]]);
    const warnings = all.told.told.filter((line) => line.startsWith("The version of "));
    expect(warnings).toEqual([
      expect.stringMatching(/^The version of agent_0 is not known: Cannot reach agent_0/),
    ]);
  });

  test("a time limit says what it was waiting for", async () => {
    await longEnough(4_000, async (timeoutMs) => {
      await using all = await upgradeMachines(["master"]);
      const failure = await failureOf(all.upgrade({ script: "sleep 3600", timeoutMs }));
      expect(failure.id).toBe("deadline-passed");
      // Otherwise, the limit passed before the program had seen the script run.
      if (!failure.message.includes("its upgrade script is running")) return false;
      expect(failure.message).toContain(
        "It was still waiting for master_0: its upgrade script is running.\nVersion 1.0: master_0. The upgrade of master_0 may go on by itself.",
      );
      return true;
    });
  });

  test("a script that changes nothing has failed", async () => {
    await using all = await upgradeMachines(["master"]);
    const failure = await failureOf(all.upgrade({ script: "exit 0" }));
    expect(failure.message).toStartWith(
      "The upgrade failed on master_0: its upgrade script succeeded, but the node still has version 1.0.",
    );
  });

  test.each([
    [
      "a release without upgrades",
      { head: "# variant: oss" },
      "bad-usage",
      "cannot upgrade a running cluster",
    ],
    ["another variant", { head: "# variant: ee" }, "variant-mismatch", "is the enterprise variant"],
    [
      "a folder's artifact without upgrade",
      { head: folderHead("") },
      "bad-usage",
      "has no program named upgrade",
    ],
    ["another layout", { head: folderHead("# upgrade: yes\n") }, "artifact-invalid", "other paths"],
  ] as const)("refuses %s before anything is touched", async (_, changes, id, text) => {
    await using all = await upgradeMachines(["master"]);
    const failure = await failureOf(all.upgrade(changes));
    expect(failure).toMatchObject({ id, message: expect.stringContaining(text) });
    expect(
      all.machines.machines[0]!.commands.filter(
        (line) => !/e2e-(node-version|secrets|upgrade-lock)/.test(line),
      ),
    ).toEqual([]);
  });

  test("refuses a cluster that lacks a node, which would keep its version", async () => {
    await using all = await upgradeMachines(["master", "agent"]);
    const [master, agent] = all.cluster.nodes as [NodeRecord, NodeRecord];
    const gone = { id: "machine-failed", facts: { cluster: all.cluster.id, nodes: ["agent_0"] } };
    for (const lost of [{ state: "stopped" as const }, { ssh: { ...agent.ssh, host: "" } }])
      expect(
        await failureOf(all.upgrade({ record: { nodes: [master, { ...agent, ...lost }] } })),
      ).toMatchObject(gone);
    expect(await failureOf(all.upgrade({ record: { state: "incomplete" } }))).toMatchObject({
      ...gone,
      facts: { nodes: [] },
    });
    expect(await all.events()).toEqual([""]);
  });

  test("refuses nodes on which nothing is installed, a configuration that is gone, or one that the artifact refuses", async () => {
    await using all = await upgradeMachines(["master", "agent"]);
    const [master, agent] = all.machines.machines;
    const refused = async () => failureOf(all.upgrade());
    await master!.write("var/lib/cluster-e2e/installer/genconf/config.yaml", 'superuser: "you"\n');
    expect(await refused()).toMatchObject({
      id: "configuration-refused",
      message: expect.stringContaining("superuser: must be set"),
      hint: expect.stringContaining("Change it there"),
    });
    await rm(join(master!.folder, "var/lib/cluster-e2e/installer/genconf/config.yaml"));
    expect(await refused()).toMatchObject({
      id: "not-installed",
      message: expect.stringContaining("config.yaml"),
    });
    await rm(join(agent!.folder, "opt/mesosphere/etc/dcos-version.json"));
    expect(await refused()).toMatchObject({
      id: "not-installed",
      message: expect.stringContaining("agent_0"),
    });
    expect(await all.events()).toEqual([""]);
  });
});

function folderHead(more: string): string {
  return `# variant: none\n# platform: {"name": "meter", "version": "1.0"}\n${more}`;
}
