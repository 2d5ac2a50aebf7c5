/** The library with a backend whose machines can be stopped. The machine that the tests log in to runs all the time. */

import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { Backend } from "../../../src/backend/contract.ts";
import type { Power } from "../../../src/backend/power.ts";
import { Cluster } from "../../../src/index.ts";
import { libraryRuntime } from "../../../src/library/runtime.ts";
import type { NodeState } from "../../../src/model/cluster-record.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster, exampleTraits } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** A cluster of one master, and what its backend was asked to do. */
async function openFixture() {
  const stack = new AsyncDisposableStack();
  const scratch = stack.use(await scratchFolder());
  const machines = stack.use(await startMachines({ roles: ["master"] }));
  const directory = join(scratch.path, "example");
  await machines.openTo(directory);
  const [{ node }] = machines.machines as [(typeof machines.machines)[number]];
  const now: { state: NodeState } = { state: "running" };
  const called: string[] = [];
  const become =
    (name: string, state: NodeState): Power["start"] =>
    async (_cluster, nodes, signal) => {
      signal.throwIfAborted();
      called.push(`${name} ${nodes.map(({ id }) => id).join(" ")}`);
      now.state = state;
    };
  const power: Power = {
    stopsClocks: false,
    pause: become("pause", "paused"),
    resume: become("resume", "running"),
    shutDown: become("shut down", "stopped"),
    cutPower: become("cut", "stopped"),
    start: become("start", "running"),
  };
  const find = async () => ({ ...exampleCluster([{ ...node, ...now }], "oss"), directory });
  const backend = {
    name: "vm",
    nodes: exampleTraits,
    find,
    local: { power },
  } as unknown as Backend<undefined>;
  const runtime = libraryRuntime({ environment: { XDG_STATE_HOME: scratch.path } }, {});
  const settings = () => ({ runtime, options: undefined });
  const cluster = await Cluster.find(
    { distribution: "debian-12", settings, open: async () => backend },
    "example",
  );
  return {
    cluster,
    id: node.id,
    now,
    called,
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}

describe.skipIf(machinesLack !== undefined)("the power of a cluster's nodes", () => {
  test("goes off and on as asked, by default on all nodes", async () => {
    await using fixture = await openFixture();
    const { cluster, id, now, called } = fixture;
    const after = async (change: Promise<void>): Promise<unknown> => {
      called.length = 0;
      await change;
      return [...called, now.state];
    };
    expect(await after(cluster.pause())).toEqual([`pause ${id}`, "paused"]);
    expect(await failureOf(cluster.masters[0].run({ args: ["true"] }))).toMatchObject({
      id: "node-stopped",
      message: expect.stringContaining('master_0 of cluster "example" is paused'),
      hint: "Let it continue: call `resume`",
    });
    expect(await after(cluster.resume({ nodes: ["master_0"] }))).toEqual([
      `resume ${id}`,
      "running",
    ]);
    expect(await after(cluster.stop())).toEqual([`shut down ${id}`, "stopped"]);
    expect(await after(cluster.start({ nodes: ["masters"] }))).toEqual([`start ${id}`, "running"]);
    expect(await after(cluster.restart())).toEqual([`shut down ${id}`, `start ${id}`, "running"]);
    expect(await after(cluster.restart({ force: true }))).toEqual([
      `cut ${id}`,
      `start ${id}`,
      "running",
    ]);
    expect((await cluster.masters[0].run({ args: ["echo", "hello"] })).stdout).toBe("hello\n");
    expect(await after(cluster.stop({ force: true }))).toEqual([`cut ${id}`, "stopped"]);
  });

  test("stays on where a request is wrong, or cancelled", async () => {
    await using fixture = await openFixture();
    const { cluster, called } = fixture;
    expect((await failureOf(cluster.stop({ nodes: ["agent_0"] }))).id).toBe("node-not-found");
    expect((await failureOf(cluster.stop({ nodes: [] }))).id).toBe("bad-usage");
    expect((await failureOf(cluster.pause({ force: true } as never))).id).toBe("bad-usage");
    const cancelSignal = AbortSignal.abort(new Error("enough"));
    expect((await failureOf(cluster.stop({ cancelSignal }))).message).toBe("enough");
    expect(called).toEqual([]);
  });
});
