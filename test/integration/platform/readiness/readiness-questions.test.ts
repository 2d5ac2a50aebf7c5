/** How often nodes are asked while a platform is waited for, and what becomes of what they say. */
import { chmod, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import {
  type ReadinessReport,
  type ReadinessRequest,
  waitUntilReady,
} from "../../../../src/platform/readiness/readiness.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import type { Clock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import {
  type FolderMachine,
  type FolderMachines,
  machinesLack,
  startMachines,
} from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { longEnough } from "../../../support/long-enough.ts";
import { fastClock } from "../../../support/scripted-clock.ts";
import { until } from "../../../support/until.ts";

interface Waiting {
  /** Lines of progress, and where they came. */
  readonly told: readonly string[];
  readonly report: Promise<ReadinessReport>;
}

function wait(
  { nodes, connections }: Pick<FolderMachines, "nodes" | "connections">,
  changes: Partial<ReadinessRequest> = {},
  signal = neverAborted,
): Waiting {
  const told: string[] = [];
  const cluster = exampleCluster(nodes, "oss");
  const request: ReadinessRequest = {
    describe: async () => cluster,
    cluster,
    connections,
    untilMasked: async () => void told.push("masked"),
    login: undefined,
    skipHttpChecks: true,
    deadlineMs: fastClock.now() + 200_000_000,
    clock: fastClock,
    progress: { ...silentProgress, waiting: (text) => void told.push(text) },
    ...changes,
  };
  return { told, report: waitUntilReady(request, signal) };
}

const questions = ({ commands }: FolderMachine): number =>
  commands.filter((line) => line.includes("e2e-readiness")).length;

async function install(machine: FolderMachine, check: string): Promise<void> {
  await machine.write("opt/cluster/bin/check", `#!/bin/sh\n${check}\n`);
  await chmod(join(machine.folder, "opt/cluster/bin/check"), 0o755);
  await machine.write("var/lib/cluster-e2e/layout", "cluster\n");
  await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
}

const untilReady = 'echo x >>"$MACHINE/calls"; echo no leader; [ -e "$MACHINE/is-ready" ]';
/** A busy computer may be slow to answer for the first time. */
const isAnswer = (text: string): boolean => !text.includes("it has not answered yet");
const looks = async (machine: FolderMachine): Promise<number> =>
  (await machine.read("calls").catch(() => "")).length / 2;

describe.skipIf(machinesLack !== undefined)("a node that is waited for", () => {
  test("is not asked again before something changes there, however often it looks", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const machine = machines.machines[0]!;
    await install(machine, untilReady);
    const { told, report } = wait(machines);
    await until("it has looked often", async () => (await looks(machine)) > 6);
    expect(questions(machine)).toBe(2);
    await machine.write("is-ready", "");
    await report;
    expect(questions(machine)).toBe(3);
    expect(told.filter(isAnswer)).toEqual([
      "masked",
      expect.stringContaining("no leader"),
      "all checks passed; confirming",
    ]);
  });

  test("is named within seconds if its first check takes long", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const [master, agent] = [machines.machines[0]!, machines.machines[1]!];
    await install(master, "exit 0");
    await install(agent, 'while [ ! -e "$MACHINE/is-ready" ]; do sleep 0.1; done');
    const { told, report } = wait(machines);
    await until("it is named", () => told.length > 0, { limitMs: 15_000 });
    await agent.write("is-ready", "");
    expect(told[0]).toContain("agent_0: it has not answered yet");
    expect(await report).toMatchObject({ nodeCount: 2 });
  });

  test("that loses its connection meanwhile is asked over another one", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const machine = machines.machines[0]!;
    await install(machine, untilReady);
    const { told, report } = wait(machines);
    await until("it has looked again", async () => (await looks(machine)) > 2);
    machine.cutConnections();
    await until("it is asked again", () => machine.logins() > 1);
    await machine.write("is-ready", "");
    await report;
    expect(told.join("\n")).toContain("master_0: it does not answer: ");
  });

  test("is left alone when the wait is given up", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const machine = machines.machines[0]!;
    await install(machine, untilReady);
    const stop = new AbortController();
    const failure = failureOf(wait(machines, {}, stop.signal).report);
    await until("it has looked again", async () => (await looks(machine)) > 2);
    stop.abort(new Error("enough"));
    expect((await failure).message).toBe("enough");
    const seen = await looks(machine);
    await Bun.sleep(1_000);
    expect(await looks(machine)).toBeLessThanOrEqual(seen + 1);
  });

  test("while another one is not ready is asked again at its own, longer period, and may fail meanwhile", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const [master, agent] = [machines.machines[0]!, machines.machines[1]!];
    await install(master, 'echo x >>"$MACHINE/calls"; [ ! -e "$MACHINE/is-broken" ]');
    await install(agent, untilReady);
    const { report, told } = wait(machines);
    await until("the master was asked again", () => questions(master) > 1);
    await master.write("is-broken", "");
    await until("its failure is told", () => told.some((text) => text.includes("master_0: ")));
    await agent.write("is-ready", "");
    await rm(join(master.folder, "is-broken"));
    expect(await report).toMatchObject({ nodeCount: 2 });
  });

  test("is waited for by its latest words when the time is over", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await install(machines.machines[0]!, untilReady);
    await longEnough(40_000, async (limitMs) => {
      const { report } = wait(machines, { deadlineMs: fastClock.now() + limitMs });
      const error = await failureOf(report);
      expect(error).toMatchObject({ id: "deadline-passed" });
      return error.message.includes("master_0: its check says: no leader");
    });
  });

  test.each([
    { what: "answers at once, whatever it is asked, is asked a second apart", early: 0 },
    {
      what: "has another answer each time is asked a second apart after a few questions",
      early: 3,
    },
  ])("that $what", async ({ early }) => {
    const askedAtMs: number[] = [];
    const enough = new AbortController();
    const last = { nowMs: 0 };
    const pauses: number[] = [];
    const clock: Clock = {
      now: () => (last.nowMs = fastClock.now()),
      sleep: async (ms, signal) => {
        pauses.push(ms);
        await fastClock.sleep(ms, signal);
      },
    };
    const seen = () => (early === 0 ? "" : `seen=${askedAtMs.length}-1\n`);
    const run: Connection["run"] = async () => ({
      status: 0,
      stdout: `${seen()}layout=\n`,
      stderr: "",
    });
    const connect = async () => {
      // The period begins at the time that was read just before.
      if (askedAtMs.push(last.nowMs) === early + 5) enough.abort(new Error("asked often enough"));
      return { run };
    };
    const connections = { connect } as never;
    await using machines = await startMachines({ roles: ["master"] });
    const failure = await failureOf(
      wait({ nodes: machines.nodes, connections }, { clock }, enough.signal).report,
    );
    expect(failure.message).toBe("asked often enough");
    // A timer may end a millisecond early, which are 20 of this clock's.
    const earliestMs = (index: number): number => (askedAtMs[0] ?? 0) + (index - early) * 1000 - 50;
    for (const [index, atMs] of askedAtMs.entries())
      expect(atMs).toBeGreaterThan(earliestMs(index));
    expect(pauses.filter((ms) => ms === 0).length).toBeGreaterThanOrEqual(early);
  });

  test("is asked a second later also if this computer's clock is set back meanwhile", async () => {
    const set = { ms: 0 };
    const asked = { count: 0 };
    const enough = new AbortController();
    const limitMs = 200_000_000;
    const clock: Clock = {
      now: () => fastClock.now() + set.ms,
      passed: () => fastClock.now(),
      sleep: async (ms, signal) => {
        if (ms > 60_000 && ms < limitMs) enough.abort(new Error(`a pause of ${ms} ms`));
        await fastClock.sleep(ms, signal);
      },
    };
    const run: Connection["run"] = async () => ({ status: 0, stdout: "layout=\n", stderr: "" });
    const connect = async () => {
      asked.count += 1;
      if (asked.count === 6) set.ms = -3_600_000;
      if (asked.count === 9) enough.abort(new Error("asked often enough"));
      return { run };
    };
    await using machines = await startMachines({ roles: ["master"] });
    const nodes = { nodes: machines.nodes, connections: { connect } as never };
    const failure = await failureOf(
      wait(nodes, { clock, deadlineMs: clock.now() + limitMs }, enough.signal).report,
    );
    expect(failure.message).toBe("asked often enough");
  });
});

test.skipIf(machinesLack !== undefined)(
  "nothing that a node says is shown before new secrets are masked",
  async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await install(machines.machines[0]!, untilReady);
    const told: string[] = [];
    const masked = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const stop = new AbortController();
    const { report } = wait(
      machines,
      {
        untilMasked: async () => {
          asked.resolve();
          await masked.promise;
        },
        progress: { ...silentProgress, waiting: (text) => void told.push(text) },
        onAnswers: (answers) => void told.push(JSON.stringify(answers)),
      },
      stop.signal,
    );
    const failure = failureOf(report);
    await asked.promise;
    expect(told.filter(isAnswer)).toEqual([]);
    masked.resolve();
    await until("it is told", () => told.join("").includes("no leader"));
    stop.abort(new Error("enough"));
    await failure;
  },
);
