/** What meets `fault random`, `--until` and each kind of fault in the middle. Afterwards the nodes were told to heal, and all of them run commands. */
import { readdir } from "node:fs/promises";
import type { Ended, Running } from "../../e2e/support/executable.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import { until } from "../../support/until.ts";
import type { Expected, Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { type TesterWorld, assertHealed, long, observed, row, succeed } from "./tester-faults.ts";

const random = (words: string): readonly string[] => [
  ..."fault random --seed 7 --for 10m --kinds disk --fill /data --targets majority".split(" "),
  ...words.split(" "),
  "-c",
  "faulty",
];

/** A point in the course of random faults. */
interface Point {
  readonly name: string;
  /** The first answers of the nodes, before the usual ones. */
  readonly answers: readonly ScriptedAnswer[];
  readonly words: string;
  readonly reach: (world: TesterWorld, running: Running) => Promise<unknown>;
  /** Whether a node has a fault then. */
  readonly hasFault: boolean;
}

const hasBegun = async (world: TesterWorld, text: string, more = 0): Promise<void> =>
  until(`a node has ${text}`, async () => {
    const found = (await world.begun()).filter((each) => each.includes(text));
    return found.length > more;
  });

/** From now on the nodes say that they have the fault that was begun here. */
async function showFault(world: TesterWorld): Promise<void> {
  const names = await readdir(world.stateFolder, { recursive: true });
  const [, id] = /fault-([0-9a-f]{8})\.json/.exec(names.join("\n")) ?? [];
  if (id === undefined) throw new Error("no fault is noted");
  const record = JSON.stringify({ kind: "disk", description: "/data filled", links: [] });
  await world.answer({ ...observed, stdout: `fault=${id} 60 ${record}\nfree=0\n` });
}

const points: readonly Point[] = [
  {
    name: "before the first fault",
    answers: [long("e2e-observe-node")],
    words: "--every 60s",
    reach: async (world) => hasBegun(world, "e2e-observe-node"),
    hasFault: false,
  },
  {
    name: "while a fault begins",
    answers: [long("e2e-start-fault"), observed],
    words: "--every 60s",
    reach: async (world) => hasBegun(world, "e2e-start-fault"),
    hasFault: true,
  },
  {
    name: "while a fault lasts",
    answers: [observed],
    words: "--every 60s",
    reach: async (world, running) => {
      await running.said("The fault shows");
      await showFault(world);
    },
    hasFault: true,
  },
  {
    name: "while the nodes are asked whether they have healed",
    answers: [observed],
    words: "--every 5s",
    reach: async (world, running) => {
      await running.said("The fault shows");
      const before = (await world.begun()).filter((each) => each.includes("e2e-observe-node"));
      await world.answer(long("e2e-observe-node"));
      await hasBegun(world, "e2e-observe-node", before.length);
      await showFault(world);
    },
    hasFault: true,
  },
  {
    name: "while every node's check is awaited",
    answers: [long("e2e-readiness"), observed],
    words: "--every 5s --recover 10m",
    reach: async (world) => hasBegun(world, "e2e-readiness"),
    hasFault: false,
  },
  {
    name: "between two faults",
    answers: [observed],
    // Long enough for a slow computer to be early for the next one.
    words: "--every 30s",
    reach: async (_world, running) => running.said("the next fault"),
    hasFault: false,
  },
];

/** At each point, a signal ends the program. */
function killedFaults<Bench extends TesterWorld>(): readonly Fault<Bench>[] {
  return points.flatMap(({ name, answers, words, reach, hasFault }) =>
    (["SIGINT", "SIGKILL"] as const).map((signal) =>
      row<Bench>(
        `${signal} in random faults, ${name}`,
        async (world) => {
          await world.answer(...answers);
          const running = world.start(random(words));
          await reach(world, running);
          running.interrupt(signal);
          const ended = await running.ended;
          // Nobody healed anything after SIGKILL; the nodes would by themselves.
          if (signal === "SIGKILL") await succeed(world, ["fault", "heal", "-c", "faulty"]);
          if (hasFault && (signal === "SIGINT" || name !== "while a fault begins"))
            await assertHealed(world);
          await runsAgain(world);
          return ended;
        },
        signal === "SIGINT"
          ? {
              status: signal,
              id: "interrupted",
              says: ["fault random --for=600s --seed=7", "--cluster-id=faulty"],
            }
          : { status: signal, says: [] },
      ),
    ),
  );
}

async function runsAgain(world: TesterWorld): Promise<void> {
  await world.answer(observed);
  await succeed(world, ["run", "-c", "faulty", "--node", "all", "--no-test-env", "true"]);
}

/** The nodes have these answers, and the command fails. */
const failing = <Bench extends TesterWorld>(
  name: string,
  words: readonly string[],
  answers: readonly ScriptedAnswer[],
  expected: Omit<Expected, "keepsCluster">,
): Fault<Bench> =>
  row(
    name,
    async (world) => {
      await world.answer(...answers);
      const ended = await world.run(words);
      await assertHealed(world);
      await runsAgain(world);
      return ended;
    },
    expected,
  );

const onAll = (words: string): readonly string[] => ["fault", ...words.split(" "), "-c", "faulty"];
const withoutSpace: ScriptedAnswer = { ...observed, stdout: "free=9000000000\n" };
const running: ScriptedAnswer = { ...observed, stdout: "process=runs\npid=7\n" };
const idle: ScriptedAnswer = { ...observed, stdout: "cpu=3\nmemory=10\ncomputer=5\n" };
const notShown = { status: 1, id: "remote-command-failed", says: ["does not show"] };
const refused = (reason: string): readonly ScriptedAnswer[] => [
  { pattern: "e2e-start-fault", status: 1, stderr: `failed: ${reason}\n`, readsStdin: true },
  observed,
];
const notBegun = (reason: string): Omit<Expected, "keepsCluster"> => ({
  status: 1,
  id: "remote-command-failed",
  says: ["cannot begin the fault", reason],
});
/** The platform never shows the fault. */
const unnoticed: ScriptedAnswer = {
  pattern: "is-noticed",
  status: 1,
  stdout: "all members answer\n",
};
const disk = "disk all --fill /data --until is-noticed";

const askedForever = row<ContainerWorld>(
  "SIGINT while the platform is asked whether it shows the fault",
  async (world): Promise<Ended> => {
    await world.answer(unnoticed, observed);
    const asking = world.start(onAll(`${disk} --for 10m`));
    await asking.said("the platform to show the fault");
    asking.interrupt("SIGINT");
    const ended = await asking.ended;
    await assertHealed(world);
    await runsAgain(world);
    return ended;
  },
  { status: "SIGINT", id: "interrupted", says: ["all members answer"] },
);

/** A node dies while a fault lasts. No other fault begins on it. */
const dyingNode = <Bench extends TesterWorld>(
  kill: (world: Bench) => unknown,
  bringBack: (world: Bench) => Promise<unknown>,
  expected: Omit<Expected, "keepsCluster">,
): Fault<Bench> =>
  row(
    "a node dies in the middle of random faults",
    async (world) => {
      await world.answer(observed);
      const begun = world.start(random("--every 5s"));
      await begun.said("The fault shows");
      await kill(world);
      const ended = await begun.ended;
      await bringBack(world);
      return ended;
    },
    expected,
  );

const startAgain = async (world: TesterWorld): Promise<void> => {
  await succeed(world, ["start", "-c", "faulty"]);
  await succeed(world, ["fault", "heal", "-c", "faulty"]);
  await runsAgain(world);
};

export const chaosFaults = {
  cloud: [
    dyingNode<CloudWorld>(
      async (world) => world.terminate([world.cloud.instances()[1]!.instanceId]),
      // The master stays, as it should; it ends with the cluster.
      async (world) => world.endCluster(),
      { status: 3, id: "node-not-found", says: ["fault random --for=600s --seed=7"] },
    ),
  ],
  container: [
    ...killedFaults<ContainerWorld>(),
    failing<ContainerWorld>(
      "a random fault that does not show",
      random("--every 5s"),
      [withoutSpace],
      { ...notShown, says: ["does not show", "fault random --for=600s --seed=7"] },
    ),
    failing<ContainerWorld>(
      "a dead process that does not show",
      onAll("process all --unit etcd"),
      [running],
      notShown,
    ),
    failing<ContainerWorld>(
      "a process that does not run",
      onAll("process all --unit etcd"),
      refused("etcd.service does not run on it"),
      notBegun("etcd.service does not run on it"),
    ),
    failing<ContainerWorld>(
      "pressure that does not show",
      onAll("pressure all --cpu 90%"),
      [idle],
      notShown,
    ),
    failing<ContainerWorld>(
      "pressure without a limit",
      onAll("pressure all --memory 80%"),
      refused("it has no limit of memory"),
      notBegun("it has no limit of memory"),
    ),
    failing<ContainerWorld>(
      "a fault that the platform does not show",
      onAll(`${disk} --for 3s`),
      [unnoticed, observed],
      { status: 4, id: "deadline-passed", says: ["does not show it", "all members answer"] },
    ),
    askedForever,
    dyingNode<ContainerWorld>(
      async ({ engine }) => engine.kill(engine.containers[0]!.id),
      startAgain,
      { status: 1, id: "node-stopped", says: ["fault random --for=600s --seed=7"] },
    ),
  ],
  vm: [
    failing<VmWorld>(
      "a slow disk that does not show",
      onAll("io all --folder /data --slow 1s"),
      [{ ...observed, stdout: "target=delay\nio=300\n" }],
      notShown,
    ),
    failing<VmWorld>(
      "a power cut that a node refuses",
      onAll("power all"),
      refused("its kernel has no /proc/sysrq-trigger"),
      notBegun("its kernel has no /proc/sysrq-trigger"),
    ),
    dyingNode<VmWorld>(
      (world) => process.kill(world.machines()[0]!, "SIGKILL"),
      async (world) => world.endCluster(),
      { status: 1, id: "node-stopped", says: ["fault random --for=600s --seed=7"] },
    ),
  ],
};
