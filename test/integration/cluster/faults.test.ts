/** Faults from beginning to end, on machines whose systemd, nft and ping are small scripts. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Backend } from "../../../src/backend/contract.ts";
import { untilFaultEnds } from "../../../src/cluster/faults/faults.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { Cluster } from "../../../src/index.ts";
import { mapOutside, mapTexts, unmarked } from "../../../src/outside-text.ts";
import { readEvents } from "../../../src/store/events.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleTraits } from "../../support/install-example.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { signal } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";
import { openFaultyCluster } from "../../support/faulty-cluster.ts";

describe.skipIf(machinesLack !== undefined)("faults", () => {
  test("a partition begins on all nodes, shows, is listed, and is healed", async () => {
    const { directory, machines, told, list, begin, end, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    const { fault } = await begin();
    expect(fault).toMatchObject({
      kind: "partition",
      nodes: ["master_0", "master_1", "agent_0"],
    });
    expect(fault.secondsLeft).toBeWithin(1, 61);
    expect(await cuts()).toEqual([true, true, true]);
    expect(told).toContainEqual(expect.stringContaining("0 of 4 pings answered, before: 4 of 4"));
    const rules = await machines[2]!.read("rules");
    for (const { node } of machines.slice(0, 2)) expect(rules).toContain(node.privateAddress!);
    expect(rules).not.toContain(machines[2]!.node.privateAddress!);
    const [found, ...others] = await list();
    expect([found?.id, found?.nodes, others]).toEqual([fault.id, fault.nodes, []]);
    expect(found?.secondsLeft).toBeWithin(1, 61);
    expect((await end()).map(({ id }) => id)).toEqual([fault.id]);
    expect([await cuts(), await list()]).toEqual([[false, false, false], []]);
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*: 4 of 4 pings answered/));
    for (const machine of machines)
      expect(await machine.read("journal")).toBe(
        ["begins", "ends"]
          .map((word) => `-t cluster-e2e fault ${fault.id} (partition) ${word}\n`)
          .join(""),
      );
    const of = { kind: "fault", id: fault.id, fault: "partition", nodes: fault.nodes };
    expect((await readEvents(directory)).filter(({ kind }) => kind === "fault")).toMatchObject([
      { ...of, course: "begun", text: fault.description, seconds: 60 },
      { ...of, course: "shown", text: expect.stringContaining("0 of 4 pings answered") },
      { ...of, course: "healed", by: "command" },
    ]);
  });

  test("the library begins, lists and heals them, at the latest at the end of their scope", async () => {
    const { backend, named, runtime, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    const clusters = {
      distribution: "debian-12",
      settings: () => ({ runtime, options: undefined }),
      open: async () => ({ ...backend, nodes: exampleTraits }) as Backend<unknown>,
    };
    const cluster = await Cluster.find(clusters, named.clusterId);
    const cut = {
      kind: "partition",
      between: ["agent_0"],
      and: ["master_0"],
      durationMs: 60_000,
    } as const;
    {
      await using fault = await cluster.fault(cut);
      expect([fault.nodes, await cuts()]).toEqual([
        ["master_0", "agent_0"],
        [true, false, true],
      ]);
      expect(fault.endsAt.getTime() - Date.now()).toBeWithin(30_000, 60_001);
      expect((await cluster.faults()).map(({ id, description }) => [id, description])).toEqual([
        [fault.id, fault.description],
      ]);
    }
    expect([await cuts(), await cluster.faults()]).toEqual([[false, false, false], []]);
    const { id } = await cluster.fault(cut);
    expect((await cluster.healFaults()).map((healed) => healed.id)).toEqual([id]);
    expect(await cuts()).toEqual([false, false, false]);
    const wrong = failureOf(
      cluster.fault({ kind: "network", durationMs: 60_000, delayMs: "1" as never }),
    );
    expect((await wrong).id).toBe("bad-usage");
    const given = { seed: 7, everyMs: 5_000, kinds: ["partition"], targets: ["majority"] } as const;
    {
      await using faults = cluster.chaos(given);
      expect(faults.seed).toBe(7);
      await until("a fault shows", async () => (await cuts()).includes(true), {
        limitMs: 100_000,
      });
    }
    expect([await cuts(), await cluster.faults()]).toEqual([[false, false, false], []]);
    const once = cluster.chaos({ ...given, only: [1], durationMs: 1_000 });
    await once.stop();
    await once.wait();
    const small = cluster.chaos({ ...given, targets: ["one"] });
    expect((await failureOf(small.wait())).id).toBe("bad-usage");
    expect(() => cluster.chaos({ ...given, seed: -1 })).toThrow("seed");
    expect(() => cluster.chaos({ ...given, kinds: ["process"] })).toThrow("unit");
  });

  test("the end of a fault's scope is no failure if the cluster is gone", async () => {
    const { backend, named, runtime, stack } = await openFaultyCluster();
    await using _ = stack;
    const state = { isGone: false };
    const find: typeof backend.find = async (id, inner) =>
      state.isGone ? undefined : backend.find(id, inner);
    const clusters = {
      distribution: "debian-12",
      settings: () => ({ runtime, options: undefined }),
      open: async () => ({ ...backend, find, nodes: exampleTraits }) as Backend<unknown>,
    };
    const cluster = await Cluster.find(clusters, named.clusterId);
    await using _fault = await cluster.fault({
      kind: "partition",
      between: ["agent_0"],
      and: ["master_0"],
      durationMs: 60_000,
    });
    state.isGone = true;
  });

  // Shows R124.
  test("what a node says of a fault is masked where it is listed", async () => {
    const { machines, backend, stack } = await openFaultyCluster();
    await using _ = stack;
    const record = { kind: "disk", description: "a disk full of hunter2", links: [], folder: "/" };
    await machines[1]!.write(
      "run/cluster-e2e-faults/0123abcd.record",
      `99999999\n${JSON.stringify(record)}\n`,
    );
    const { stdout, data } = await runCommandLine("fault list -c example", {
      kind: containerKind,
      backend,
      nowMs: 0,
    });
    const masked = (text: string): string =>
      mapOutside(text, (part) => part.replaceAll("hunter2", "***"));
    expect(masked(stdout)).toContain("a disk full of ***");
    expect(mapTexts(data, masked)).toMatchObject({
      faults: [{ id: "0123abcd", description: "a disk full of ***" }],
    });
  });

  test("the command begins a fault, lists it and heals it, and says if there is none", async () => {
    const { backend, stack } = await openFaultyCluster();
    await using _ = stack;
    const run = async (words: string) =>
      runCommandLine(`fault ${words} -c example`, {
        kind: containerKind,
        backend,
        nowMs: 0,
        columns: 120,
      });
    const {
      stdout: id,
      told,
      data,
    } = await run("partition --between agent_0 --and masters --for 90s");
    expect(data).toMatchObject({ fault: { id, kind: "partition" } });
    expect(told.at(-1)).toBe(`The nodes heal fault ${id} by themselves after 1 min.`);
    const rows = unmarked((await run("list")).stdout).split("\n");
    expect(rows.map((line) => line.split(/ {2,}/))).toEqual([
      ["FAULT", "TIME LEFT", "NODES", "WHAT"],
      [
        id,
        "1 min",
        "master_0, master_1, agent_0",
        "partition between agent_0 and master_0, master_1",
      ],
    ]);
    expect(await run("heal")).toMatchObject({ stdout: id, data: { faults: [{ id }] } });
    expect(await run("heal")).toMatchObject({ stdout: "", told: ["There is no fault to heal."] });
    expect(await run("list")).toMatchObject({
      stdout: "",
      told: ["There are no faults."],
      data: { faults: [] },
    });
  });

  test("faults overlap, and a node's name heals only those that concern it", async () => {
    const { directory, list, begin, end, stack } = await openFaultyCluster();
    await using _ = stack;
    const { fault: first } = await begin({ oneWay: true, and: ["master_0"] });
    // Whoever sends in vain may fail for it, too.
    expect((await readEvents(directory)).at(-1)).toMatchObject({ nodes: ["master_0", "agent_0"] });
    const { fault: second } = await begin({
      between: ["master_1"],
      and: ["agent_0"],
      oneWay: true,
    });
    expect((await list()).map(({ nodes }) => nodes)).toEqual([["master_0"], ["agent_0"]]);
    expect((await end(["agent_0"])).map(({ id }) => id)).toEqual([second.id]);
    expect((await list()).map(({ id }) => id)).toEqual([first.id]);
  });

  test("what is healed while it begins begins on no other node", async () => {
    const { machines, list, begin, end, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    await machines[2]!.write("late", "");
    const failing = failureOf(begin());
    await until("it has begun on the masters", async () =>
      (await cuts()).slice(0, 2).every(Boolean),
    );
    expect(await end()).toHaveLength(1);
    await Bun.file(join(machines[2]!.folder, "late")).delete();
    expect((await failing).message).toContain("it has been healed meanwhile");
    expect([await cuts(), await list()]).toEqual([[false, false, false], []]);
  });

  test.each(["broken", "vain"])("if one node is %s, no node keeps the fault", async (state) => {
    const { machines, list, begin, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    await machines[1]!.write(state, "");
    const failure = await failureOf(begin());
    expect(failure.id).toBe("remote-command-failed");
    expect([await cuts(), await list()]).toEqual([[false, false, false], []]);
  });

  test("a partition of nodes that don't answer each other before it is refused", async () => {
    const { directory, begin, list, stack } = await openFaultyCluster();
    await using _ = stack;
    const { fault } = await begin();
    const failure = await failureOf(begin());
    expect([failure.id, failure.message]).toEqual([
      "remote-command-failed",
      "The fault would not show: 0 of 4 pings answered already.",
    ]);
    expect((await list()).map(({ id }) => id)).toEqual([fault.id]);
    const courses = (await readEvents(directory)).filter(({ kind }) => kind === "fault");
    expect(courses).toHaveLength(2);
  });

  test("an interrupted beginning leaves no fault, not even one that was still on its way", async () => {
    const { machines, list, begin, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    await machines[0]!.write("hold", "");
    const interruption = new AbortController();
    const failing = failureOf(begin({}, interruption.signal));
    await until("the rules are on their way", async () =>
      Bun.file(join(machines[0]!.folder, "seen")).exists(),
    );
    interruption.abort(new Error("Enough"));
    expect((await failing).message).toBe("Enough");
    await Bun.file(join(machines[0]!.folder, "hold")).delete();
    expect(await list()).toEqual([]);
    expect((await cuts()).slice(1)).toEqual([false, false]);
  });

  test("the wait ends when the nodes have healed the fault by themselves", async () => {
    const { machines, backend, named, runtime, told, begin, list, stack } =
      await openFaultyCluster();
    await using _ = stack;
    for (const machine of machines) await machine.write("timed", "");
    const begun = await begin({ durationMs: 1_000 });
    for (const { folder } of machines) await Bun.file(join(folder, "timed")).delete();
    await untilFaultEnds({ ...runtime, signal }, backend, { ...named, begun });
    expect(await list()).toEqual([]);
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*: 4 of 4 pings answered/));
  });

  test("the wait ends when another command has healed the fault, which is recorded once", async () => {
    const { directory, backend, named, runtime, begin, end, stack } = await openFaultyCluster();
    await using _ = stack;
    const begun = await begin({ durationMs: 3_600_000 });
    await end();
    await untilFaultEnds({ ...runtime, signal }, backend, { ...named, begun });
    const healed = (await readEvents(directory)).filter(
      (event) => event.kind === "fault" && event.course === "healed",
    );
    expect(healed).toMatchObject([{ by: "command" }]);
  });

  test("the wait also ends if a node dies meanwhile, and names it", async () => {
    const { machines, backend, named, runtime, told, begin, stack } = await openFaultyCluster();
    await using _ = stack;
    for (const machine of machines.slice(0, 2)) await machine.write("timed", "");
    const begun = await begin({ durationMs: 1_000 });
    for (const { folder } of machines.slice(0, 2)) await Bun.file(join(folder, "timed")).delete();
    await machines[2]!.close();
    await untilFaultEnds({ ...runtime, signal }, backend, { ...named, begun });
    expect(told).toContainEqual(
      expect.stringMatching(/agent_0 does not show .*Cannot reach agent_0/),
    );
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*: 2 of 2 pings answered/));
  });

  test("that there is no fault is said only if a node has answered of those that are meant", async () => {
    const { machines, list, end, stack } = await openFaultyCluster();
    await using _ = stack;
    await machines[2]!.close();
    expect([await list(), await end()]).toEqual([[], []]);
    expect((await failureOf(end(["agent_0"]))).message).toContain("Cannot reach agent_0");
    for (const machine of machines.slice(0, 2)) await machine.close();
    for (const ask of [list, end])
      expect(await failureOf(ask())).toMatchObject({
        id: "connection-failed",
        message: expect.stringContaining("Cannot reach master_0"),
      });
  });

  test("an interrupted wait heals the fault", async () => {
    const { backend, named, runtime, begin, list, stack } = await openFaultyCluster();
    await using _ = stack;
    const begun = await begin();
    const interruption = new AbortController();
    const failing = failureOf(
      untilFaultEnds({ ...runtime, signal: interruption.signal }, backend, { ...named, begun }),
    );
    interruption.abort(new Error("Enough"));
    expect((await failing).message).toBe("Enough");
    expect(await list()).toEqual([]);
  });

  test("an interrupted wait that can't heal the fault says so, and stays interrupted", async () => {
    const { backend, named, runtime, begin, told, stack } = await openFaultyCluster();
    await using _ = stack;
    const begun = await begin();
    const interruption = new AbortController();
    const find = async (id: string, inner: AbortSignal) => {
      if (interruption.signal.aborted) throw new Error("The engine is gone");
      return backend.find(id, inner);
    };
    const work = { ...runtime, signal: interruption.signal };
    const failing = failureOf(untilFaultEnds(work, { ...backend, find }, { ...named, begun }));
    interruption.abort(new Error("Enough"));
    expect((await failing).message).toBe("Enough");
    expect(told.join("\n")).toContain(
      "master_0, master_1, agent_0 may have the fault until its time is over: The engine is gone",
    );
  });
});
