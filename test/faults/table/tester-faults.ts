/** What meets `fault`, and `run` on all nodes, in the middle. Afterwards no node has a fault, and all nodes run commands. */
import type { Ended, Running } from "../../e2e/support/executable.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import { until } from "../../support/until.ts";
import type { Expected, Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import type { ProgramWorld } from "../worlds/program-world.ts";
import type { VmWorld } from "../worlds/vm-world.ts";

export interface TesterWorld extends ProgramWorld {
  answer(...answers: readonly ScriptedAnswer[]): Promise<void>;
  begun(): Promise<readonly string[]>;
}

const onAll = ["run", "-c", "faulty", "--node", "all", "--no-test-env", "--", "e2e-long"] as const;
const begin = ["fault", "disk", "all", "--fill", "/data", "-c", "faulty"] as const;
export const observed: ScriptedAnswer = {
  pattern: "e2e-observe-node",
  stdout: "free=0\n",
  readsStdin: true,
};
export const long = (pattern: string): ScriptedAnswer => ({
  pattern,
  delayMs: 600_000,
  readsStdin: true,
});
/** The words of `run` are in the script that a session gets. */
const session = "iflag=fullblock";

export const row = <Bench extends TesterWorld>(
  name: string,
  act: (world: Bench) => Promise<Ended>,
  expected: Omit<Expected, "keepsCluster">,
): Fault<Bench> => ({
  name,
  place: "machine",
  seconds: 8,
  needsCluster: true,
  act,
  expected: { ...expected, keepsCluster: true, withinMs: 60_000 },
});

/** Starts a command whose answer from the nodes is long, and does something when they have it. */
const meeting =
  <Bench extends TesterWorld>(
    words: readonly string[],
    pattern: string,
    meet: (world: Bench, running: Running) => unknown,
  ) =>
  async (world: Bench): Promise<Ended> => {
    await world.answer(long(pattern), observed);
    const running = world.start(words);
    await until("a node has the command", async () =>
      (await world.begun()).some((text) => text.includes(pattern)),
    );
    await meet(world, running);
    const ended = await running.ended;
    await world.answer(observed);
    await succeed(world, ["run", "-c", "faulty", "--node", "all", "--no-test-env", "true"]);
    return ended;
  };

export async function succeed(world: ProgramWorld, words: readonly string[]): Promise<void> {
  const { status, stderr } = await world.run(words);
  if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}:\n${stderr}`);
}

/** Whether the nodes were told to heal what may have begun. */
export async function assertHealed(world: TesterWorld): Promise<void> {
  if (!(await world.begun()).some((text) => text.includes("e2e-heal-faults")))
    throw new Error("nobody healed the nodes");
}

function faultsWith<Bench extends TesterWorld>(): readonly Fault<Bench>[] {
  const interrupt = (signal: "SIGINT" | "SIGKILL") => (_world: Bench, running: Running) =>
    running.interrupt(signal);
  const signalled = (["SIGINT", "SIGKILL"] as const).flatMap((signal) => {
    const end =
      signal === "SIGINT"
        ? { status: signal, id: "interrupted", says: [] }
        : { status: signal, says: [] };
    return [
      row<Bench>(
        `${signal} in the middle of a run on all nodes`,
        meeting(onAll, session, interrupt(signal)),
        end,
      ),
      row<Bench>(
        `${signal} while a fault begins`,
        async (world) => {
          const ended = await meeting<Bench>(begin, "e2e-start-fault", interrupt(signal))(world);
          if (signal === "SIGINT") await assertHealed(world);
          else await succeed(world, ["fault", "heal", "-c", "faulty"]);
          return ended;
        },
        end,
      ),
    ];
  });
  return [
    ...signalled,
    row(
      "a fault cannot begin",
      async (world) => {
        await world.answer(
          { pattern: "e2e-start-fault", status: 1, stderr: "failed: it has no fallocate\n" },
          observed,
        );
        const ended = await world.run(begin);
        await assertHealed(world);
        return ended;
      },
      {
        status: 1,
        id: "remote-command-failed",
        says: ["cannot begin the fault", "it has no fallocate"],
      },
    ),
    row(
      "a fault that does not show",
      async (world) => {
        await world.answer({ ...observed, stdout: "free=9000000000\n" });
        const ended = await world.run(begin);
        await assertHealed(world);
        return ended;
      },
      { status: 1, id: "remote-command-failed", says: ["does not show"] },
    ),
    row(
      "the nodes print garbage about their faults",
      async (world) => {
        await world.answer({
          ...observed,
          stdout: `fault=../../x 7 {}\nfault=0123abcd 7 {"kind":"\u0007"}\n${"x".repeat(1e6)}`,
        });
        return world.run(["fault", "list", "-c", "faulty"]);
      },
      { status: 0, says: ["There are no faults"], hides: ["\u0007"] },
    ),
  ];
}

/** What ends a machine, and brings it back. */
function endingNode<Bench extends TesterWorld>(
  kill: (world: Bench) => unknown,
): readonly Fault<Bench>[] {
  const killing = (words: readonly string[], pattern: string) => async (world: Bench) =>
    meeting<Bench>(words, pattern, async (bench, running) => {
      await kill(bench);
      running.ended.catch(() => {});
      await bench.answer(observed);
      await running.ended;
      await succeed(bench, ["start", "-c", "faulty"]);
    })(world);
  return [
    row("a node ends while a fault begins", killing(begin, "e2e-start-fault"), {
      status: 1,
      id: "connection-failed",
      says: ["was lost"],
    }),
  ];
}

const instanceEnds = row<CloudWorld>(
  "a node ends while a fault begins",
  async (world) => {
    await world.answer({ pattern: "e2e-start-fault", readsStdin: true, delayMs: 5_000 }, observed);
    const running = world.start(begin);
    await until("both nodes have the fault", async () => {
      const begun = await world.begun();
      return begun.filter((text) => text.includes("e2e-start-fault")).length === 2;
    });
    await world.terminate([world.cloud.instances()[1]!.instanceId]);
    const ended = await running.ended;
    await assertHealed(world);
    // The master stays, as it should; it ends with the cluster.
    await world.endCluster();
    return ended;
  },
  { status: 1, id: "connection-failed", says: ["may have the fault until its time is over"] },
);

export const testerFaults = {
  cloud: [...faultsWith<CloudWorld>(), instanceEnds],
  container: [
    ...faultsWith<ContainerWorld>(),
    ...endingNode<ContainerWorld>(async ({ engine }) => {
      for (const { id } of engine.containers) await engine.kill(id);
    }),
  ],
  vm: [
    ...faultsWith<VmWorld>(),
    ...endingNode<VmWorld>((world) => {
      for (const machine of world.machines()) process.kill(machine, "SIGKILL");
    }),
  ],
};
