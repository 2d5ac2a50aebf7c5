import { expect, test } from "bun:test";
import { StartingMachines } from "../../../../src/cluster/create/starting-machines.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { ClusterRecord, NodeRecord, NodeState } from "../../../../src/model/cluster-record.ts";
import { type Clock, systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster, exampleNode } from "../../../support/install-example.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const agent = (index: number, host: string, state: NodeState = "running") =>
  exampleNode({ id: `a${index}`, index, host, state });
const agents = (count: number, host: string): readonly NodeRecord[] =>
  Array.from({ length: count }, (_, index) => agent(index, host));

interface Given {
  readonly nodeCount: number;
  /** What each look finds; after the last one, that. */
  readonly looks: readonly (readonly NodeRecord[] | ClusterError)[];
  /** Called before each look, with the number of looks before. */
  readonly onLook?: (machines: StartingMachines, looks: number) => Promise<void>;
  readonly lookEveryMs?: number;
  /** Default: a scripted one, whose pauses are kept. */
  readonly clock?: Clock;
}

/** Machines that are found as the test says, and what the user sees of the wait for them. */
function starting({ nodeCount, looks, onLook, clock, lookEveryMs = 1000 }: Given) {
  const scripted = scriptedClock();
  const calls: string[] = [];
  const waits: string[] = [];
  const seen = { looks: 0 };
  const look = async (): Promise<ClusterRecord> => {
    await onLook?.(machines, seen.looks);
    const found = looks[Math.min(seen.looks, looks.length - 1)]!;
    seen.looks += 1;
    if (found instanceof ClusterError) throw found;
    return exampleCluster(found, "oss");
  };
  const launch = async (publicKey: string): Promise<void> =>
    void calls.push(`launch with ${publicKey}`);
  const finishBoots = async (): Promise<void> => void calls.push("finish boots");
  const firstLogin = { lookEveryMs, finishBoots };
  const creation = {
    launch,
    look,
    firstLogin,
    summary: { counts: { master: 0, agent: nodeCount, public_agent: 0 } },
  };
  const progress = {
    ...silentProgress,
    waiting: (text: string) => void waits.push(`${seen.looks}: ${text}`),
  };
  const machines = new StartingMachines(
    {
      creation: creation as never,
      publicKey: "a key",
      logIn: async ({ id }) => void calls.push(`log in to ${id}`),
    },
    { clock: clock ?? scripted, progress },
  );
  return { machines, pauses: scripted.pauses, waits, seen, calls };
}

const over = new ClusterError("machine-failed", "A machine has ended.");

test("the user sees which machines are missing, which lack an address, and which accept no login yet", async () => {
  const mixed = [
    agent(1, "10.0.0.2"),
    agent(0, "10.0.0.1"),
    agent(2, ""),
    agent(3, "", "starting"),
  ];
  const { machines, waits } = starting({
    nodeCount: 4,
    looks: [
      [],
      [],
      agents(4, ""),
      agents(4, "10.0.0.1"),
      agents(3, "10.0.0.1"),
      mixed,
      mixed,
      over,
    ],
    onLook: async (all, looks) => {
      if (looks === 1) await all.launch(neverAborted);
      if (looks === 6) await all.logIn(mixed[1]!, neverAborted);
    },
  });
  expect((await failureOf(machines.watch(neverAborted))) as Error).toBe(over);
  expect(waits.slice(0, -1)).toEqual([
    "2: waiting for 4 of 4 machines to start",
    "3: waiting for agent_0, agent_1, agent_2 and 1 more to get a public address",
    "4: waiting for agent_0, agent_1, agent_2 and 1 more to accept SSH logins",
    "5: waiting for 1 of 4 machines to start, agent_0, agent_1, agent_2 to accept SSH logins",
    "6: waiting for 1 of 4 machines to start, agent_2 to get a public address, agent_0, agent_1 to accept SSH logins",
    "7: waiting for 1 of 4 machines to start, agent_2 to get a public address, agent_1 to accept SSH logins",
  ]);
});

test("it looks often at first, again after the launch, and rarely once all have their addresses", async () => {
  const here = agents(2, "10.0.0.1");
  const { machines, pauses } = starting({
    nodeCount: 2,
    looks: [...Array.from({ length: 12 }, () => []), here, here, over],
    onLook: async (all, looks) => {
      if (looks === 9) await all.launch(neverAborted);
    },
  });
  await failureOf(machines.watch(neverAborted));
  const slower = [
    200, 250, 312.5, 390.625, 488.28125, 610.3515625, 762.939453125, 953.67431640625, 1000,
  ];
  expect(pauses).toEqual([...slower, 200, 250, 1000, 1000]);
});

test("each node arrives once, as soon as it runs and has an address, until all are there", async () => {
  const { machines } = starting({
    nodeCount: 3,
    looks: [
      [agent(0, "10.0.0.1", "starting"), agent(1, "")],
      [agent(0, "10.0.0.1"), agent(1, "")],
      [agent(0, "10.0.0.1"), agent(1, "10.0.0.2"), agent(2, "10.0.0.3")],
      over,
    ],
  });
  const watching = failureOf(machines.watch(neverAborted));
  const arrived: string[] = [];
  for await (const { id } of machines.arrivals(neverAborted)) arrived.push(id);
  expect(arrived).toEqual(["a0", "a1", "a2"]);
  await watching;
});

test("after the last login, only the end of a machine is a failure", async () => {
  const here = agents(1, "10.0.0.1");
  const silent = new ClusterError("cloud-failed", "The cloud does not answer.");
  const { machines, pauses, seen, calls } = starting({
    nodeCount: 1,
    looks: [here, silent, over],
    onLook: async (all, looks) => {
      if (looks > 0) return;
      await all.launch(neverAborted);
      await all.logIn(here[0]!, neverAborted);
    },
  });
  const watching = failureOf(machines.watch(neverAborted));
  expect((await machines.untilComplete(neverAborted)).nodes).toEqual([...here]);
  expect(calls).toEqual(["launch with a key", "log in to a0", "finish boots"]);
  expect((await watching) as Error).toBe(over);
  expect([seen.looks, pauses]).toEqual([3, [1000, 1000]]);
});

test("the last login ends the pause between two looks, and needs no other look", async () => {
  const here = agents(2, "10.0.0.1");
  const { machines, seen, calls } = starting({
    nodeCount: 2,
    looks: [here],
    clock: systemClock,
    lookEveryMs: 60_000,
  });
  const stop = new AbortController();
  expect(() => machines.cluster).toThrow(TypeError);
  await machines.launch(neverAborted);
  const watching = failureOf(machines.watch(stop.signal));
  for await (const node of machines.arrivals(neverAborted))
    await machines.logIn(node, neverAborted);
  expect((await machines.untilComplete(neverAborted)).nodes).toEqual([...here]);
  expect(machines.cluster.nodes).toEqual([...here]);
  const logins = ["log in to a0", "log in to a1"];
  expect([seen.looks, calls]).toEqual([1, ["launch with a key", ...logins, "finish boots"]]);
  stop.abort(new Error("enough"));
  expect((await watching).message).toBe("enough");
});
