/** Random faults: the same for the same seed, on nodes that exist, and never on more of them than the cluster can do without. */
import { optionName } from "../../../../src/references.ts";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  type ChaosOptions,
  assertChaosFits,
  chaosPlan,
  chaosProblems,
  chaosTargets,
  stepText,
} from "../../../../src/cluster/faults/chaos-plan.ts";
import { faultProblems } from "../../../../src/cluster/faults/plan-fault.ts";
import type { NodeRecord, Role } from "../../../../src/model/cluster-record.ts";
import { holds } from "../../../support/holds.ts";

const node = (role: Role, index: number): NodeRecord => ({
  id: `${role}${index}`,
  role,
  index,
  state: "running",
  publicAddress: undefined,
  privateAddress: `10.0.${role.length}.${index}`,
  ssh: { host: "h", port: 22, user: "u" },
  web: { host: "h", httpPort: 80, httpsPort: 443 },
});
const clusterOf = (masters: number, agents: number) => ({
  nodes: [
    ...Array.from({ length: agents }, (_, index) => node("agent", index)),
    ...Array.from({ length: masters }, (_, index) => node("master", index)),
  ],
});

const options: ChaosOptions = {
  seed: 7,
  everyMs: 30_000,
  kinds: ["partition", "process", "network"],
  targets: ["one", "minority"],
  unit: "etcd",
};
const durationMs = 10 * 60_000;

test("a seed has the same plan for ever", () => {
  const plan = chaosPlan(clusterOf(3, 2), { ...options, durationMs: 150_000 });
  expect(plan.map(stepText)).toMatchInlineSnapshot(`
    [
      "1. after 0.0 s: network on master_1 for 14.0 s (loss 13%)",
      "2. after 30.0 s: partition on agent_1 for 16.0 s",
      "3. after 1 min: process on master_2 for 12.0 s (unit etcd, signal kill)",
      "4. after 1 min 30 s: partition on master_1 for 10.0 s",
      "5. after 2 min: network on master_1 for 14.0 s (loss 39%)",
    ]
  `);
});

test("the plan depends on neither the backend nor the order of the nodes", () => {
  const { nodes } = clusterOf(5, 3);
  const other = nodes.map((each) => ({ ...each, id: `i-${each.id}`, privateAddress: "10.9.9.9" }));
  const plan = (cluster: ReturnType<typeof clusterOf>): string =>
    JSON.stringify(chaosPlan(cluster, { ...options, durationMs }));
  expect(plan({ nodes: other.toReversed() })).toBe(plan({ nodes }));
  expect(JSON.stringify(chaosPlan({ nodes }, { ...options, seed: 8, durationMs }))).not.toBe(
    plan({ nodes }),
  );
});

test.each([
  ["vm", [1, 0], ["partition"], "no node that it can do without"],
  ["vm", [3, 0], ["partition", "power"], undefined],
  ["cloud", [1, 2], ["power"], undefined],
  ["container", [3, 2], ["partition", "power"], "outlasts a power cut"],
  ["container", [3, 2], ["partition", "process"], undefined],
] as const)(
  "a new cluster on %s with %j masters and agents and faults of %j",
  (backend, [master, agent], kinds, problem) => {
    const counts = { master, agent, public_agent: 0 };
    const fits = () => assertChaosFits({ backend, counts }, { ...options, kinds });
    if (problem === undefined) expect(fits).not.toThrow();
    else expect(fits).toThrow(problem);
  },
);

const anyOptions = fc
  .record({
    seed: fc.nat(2 ** 32 - 1),
    everyMs: fc.integer({ min: 5_000, max: 600_000 }),
    kinds: fc.subarray([...options.kinds, "clock", "pressure"] as const, { minLength: 1 }),
    targets: fc.subarray([...chaosTargets], { minLength: 1 }),
  })
  .map((given) => ({ ...given, ...(given.kinds.includes("process") && { unit: "etcd" }) }));

test("targets exist, the cluster keeps the nodes it needs, and no fault begins before the last is over", async () => {
  await holds(100, [fc.constantFrom(1, 3, 5), fc.nat(6), anyOptions], (masters, agents, given) => {
    const cluster = clusterOf(masters, agents);
    expect(chaosProblems(given)).toEqual([]);
    const during = { ...given, durationMs: 20 * given.everyMs };
    const isTooSmall = masters < 3 && agents < 2 && !given.targets.includes("majority");
    if (isTooSmall || (masters < 3 && agents < 3 && given.targets.join() === "minority")) {
      expect(() => chaosPlan(cluster, during)).toThrow("can do without");
      return;
    }
    const plan = chaosPlan(cluster, during);
    expect(plan.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    const names = cluster.nodes.map(({ role, index }) => `${role}_${index}`);
    for (const { number, atMs, request } of plan) {
      expect(faultProblems(request)).toEqual([]);
      expect(atMs).toBe((number - 1) * given.everyMs);
      expect(request.durationMs).toBeLessThan(given.everyMs);
      const victims = request.nodes ?? request.between ?? [];
      expect(victims.length).toBeGreaterThan(0);
      expect(new Set(victims).size).toBe(victims.length);
      for (const each of victims) expect(names).toContain(each);
      if (given.targets.includes("majority")) continue;
      const lostMasters = victims.filter((each) => each.startsWith("master")).length;
      expect(lostMasters * 2).toBeLessThan(masters);
      expect(victims.length - lostMasters).toBeLessThan(Math.max(agents, 1));
    }
  });
});

/** Nodes of each state, with the names of a cluster and any ids and addresses. */
const anyNodes = fc
  .tuple(fc.constantFrom(3, 5, 7), fc.integer({ min: 2, max: 6 }))
  .chain(([masters, agents]) => {
    const { nodes } = clusterOf(masters, agents);
    const states = fc.constantFrom("running", "running", "running", "stopped", "ended");
    return fc
      .array(states, { minLength: nodes.length, maxLength: nodes.length })
      .map((all) => nodes.map((each, index): NodeRecord => ({ ...each, state: all[index]! })));
  });

test("the same seed gives the same bytes, whatever the ids, the addresses and the order of the nodes", async () => {
  const ordered = anyNodes.chain((nodes) =>
    fc.tuple(
      fc.constant(nodes),
      fc.shuffledSubarray([...nodes], { minLength: nodes.length, maxLength: nodes.length }),
    ),
  );
  await holds(100, [ordered, anyOptions, fc.uuid()], ([nodes, shuffled], given, id) => {
    const during = { ...given, durationMs: 20 * given.everyMs };
    const elsewhere = shuffled.map((each, index) => ({
      ...each,
      id: `${id}-${index}`,
      privateAddress: `172.16.0.${index}`,
      ssh: { host: id, port: 2200 + index, user: "admin" },
    }));
    const bytesOf = (some: readonly NodeRecord[], more = 0): string => {
      try {
        return chaosPlan({ nodes: some }, { ...during, durationMs: during.durationMs + more })
          .map((step) => JSON.stringify(step))
          .join("\n");
      } catch (error) {
        return String(error);
      }
    };
    expect(bytesOf(elsewhere)).toBe(bytesOf(nodes));
    expect(bytesOf(nodes, 7 * given.everyMs)).toStartWith(bytesOf(nodes));
  });
});

test("no fault is on a node that does not run, and with those that don't, a majority of the masters stays", async () => {
  await holds(100, [anyNodes, anyOptions], (nodes, given) => {
    const targets = given.targets.filter((target) => target !== "majority");
    if (targets.length === 0) return;
    const existing = nodes.filter(({ state }) => state !== "ended");
    const running = existing.filter(({ state }) => state === "running");
    const namesOf = (some: readonly NodeRecord[]) =>
      some.map(({ role, index }) => `${role}_${index}`);
    const masters = existing.filter(({ role }) => role === "master").length;
    const during = { ...given, targets, durationMs: 20 * given.everyMs };
    const plan = ((): ReturnType<typeof chaosPlan> => {
      try {
        return chaosPlan({ nodes }, during);
      } catch {
        return [];
      }
    })();
    for (const [index, { atMs, request }] of plan.entries()) {
      const victims = request.nodes ?? request.between ?? [];
      expect(namesOf(running)).toEqual(expect.arrayContaining([...victims]));
      const left = namesOf(running).filter((name) => !victims.includes(name));
      if (victims.some((name) => name.startsWith("master")))
        expect(left.filter((name) => name.startsWith("master")).length * 2).toBeGreaterThan(
          masters,
        );
      else expect(left.filter((name) => name.startsWith("agent")).length).toBeGreaterThan(0);
      const next = plan[index + 1];
      if (next !== undefined) expect(atMs + request.durationMs).toBeLessThan(next.atMs);
    }
  });
});

test("only some faults of a plan are those of the whole plan", () => {
  const whole = chaosPlan(clusterOf(3, 2), { ...options, durationMs });
  const some = chaosPlan(clusterOf(3, 2), { ...options, only: [2, 5], durationMs });
  expect(some).toEqual(whole.filter(({ number }) => [2, 5].includes(number)));
});

test("a cluster that can do without no node is refused, unless a majority is wanted", () => {
  const plan = (targets: ChaosOptions["targets"]) =>
    chaosPlan(clusterOf(1, 1), { ...options, targets, durationMs });
  expect(() => plan(["one", "minority"])).toThrow("no node that it can do without");
  expect(plan(["majority"])).toHaveLength(20);
});

test("no number of a fault, and one that would take long to draw, are refused", () => {
  expect(chaosProblems({ ...options, only: [] })).toHaveLength(1);
  expect(chaosProblems({ ...options, only: [100_000] })).toEqual([]);
  expect(chaosProblems({ ...options, only: [9_999_999_999] })).toEqual([
    `${optionName("only")}: must be numbers of faults, from 1 to 100000`,
  ]);
});

test("a command that shows one fault is refused, because it does not show all of them", () => {
  expect(chaosProblems({ ...options, until: "true" })).toEqual([
    `${optionName("until")}: not for random faults`,
  ]);
});

test("masters that don't run are the ones that the cluster does without", () => {
  const { nodes } = clusterOf(5, 3);
  const without = (...stopped: readonly string[]) => ({
    nodes: nodes.map((each) => ({
      ...each,
      state: stopped.includes(each.id) ? ("stopped" as const) : each.state,
    })),
  });
  const victims = (cluster: { readonly nodes: readonly NodeRecord[] }) =>
    chaosPlan(cluster, { ...options, durationMs }).map(
      ({ request }) => request.nodes ?? request.between ?? [],
    );
  const isMaster = (each: string): boolean => each.startsWith("master");
  const one = victims(without("master1"));
  expect(one.flat()).not.toContain("master_1");
  expect(Math.max(...one.map((each) => each.filter(isMaster).length))).toBe(1);
  expect(victims(without("master1", "master3")).flat().filter(isMaster)).toEqual([]);
  expect(() => victims(without("master0", "master1", "agent0", "agent2"))).toThrow(
    "no node that it can do without",
  );
});

test("an option of a kind that is not drawn is refused", () => {
  expect(chaosProblems({ ...options, kinds: ["partition"] })).toEqual([
    `${optionName("unit")}: only for process`,
  ]);
});

test("all nodes together are never cut off, for there is nobody else", async () => {
  const sizes = [fc.constantFrom(1, 2), fc.nat(2), anyOptions] as const;
  await holds(100, [...sizes], (masters, agents, given) => {
    const cluster = clusterOf(masters, agents);
    const all = { ...given, targets: ["majority"] as const, durationMs: 20 * given.everyMs };
    if (agents === 0 && given.kinds.join() === "partition") {
      expect(() => chaosPlan(cluster, all)).toThrow("no other node");
      return;
    }
    for (const { request } of chaosPlan(cluster, all))
      expect(request.between?.length ?? 0).toBeLessThan(cluster.nodes.length);
  });
});

test("a plan that has none of the wanted faults is refused", () => {
  expect(() => chaosPlan(clusterOf(3, 2), { ...options, only: [21, 30], durationMs })).toThrow(
    "fewer faults",
  );
});
