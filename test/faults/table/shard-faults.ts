/** Faults that meet `once --shards` on containers. Nothing is left of any copy, and the source is as before. */
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault } from "../fault.ts";
import { usualAnswers } from "../worlds/cloud-world.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import { isReady, works } from "./once-faults.ts";

type ShardFault = Fault<ContainerWorld>;
type Running = ReturnType<ContainerWorld["start"]>;

const source = ["--engine", "docker", "-c", "source"];
const onceWords = (
  "once --engine docker --from source:saved -c faulty --shards 2 --skip-http-checks --superuser-password a-password " +
  "--no-test-env -- work"
).split(" ");

/** Saves another cluster, runs shards of it that meet something, and destroys that cluster. */
const row = (
  name: string,
  answer: Parameters<typeof works>[0],
  meet: (world: ContainerWorld, once: () => Running) => Promise<Ended>,
  expected: Expected,
): ShardFault => ({
  name,
  place: "engine",
  seconds: 15,
  act: async (world) => {
    const succeed = async (words: readonly string[]): Promise<void> => {
      const { status, stderr } = await world.run(words);
      if (status !== 0) throw new Error(stderr);
    };
    await succeed(world.createWords.map((word) => (word === "faulty" ? "source" : word)));
    await succeed(["snapshot", "create", "saved", ...source]);
    world.answers.replace([isReady, works(answer), ...usualAnswers]);
    const ended = await meet(world, () => world.start(onceWords));
    world.answers.replace([isReady, works({}), ...usualAnswers]);
    // The next run of the same shards finds nothing in its way.
    await succeed(onceWords);
    world.answers.replace(usualAnswers);
    await succeed(["destroy", "--yes", ...source]);
    return ended;
  },
  expected,
});

const signalled = (signal: NodeJS.Signals, expected: Partial<Expected>): ShardFault =>
  row(
    `${signal} while the commands of shards run`,
    { delayMs: 600_000 },
    async (_, once) => {
      const running = once();
      for (const shard of [1, 2]) await running.said(`Cluster "faulty-${shard}" is ready.`);
      running.interrupt(signal);
      return running.ended;
    },
    { status: signal as Expected["status"], says: [], keepsCluster: false, ...expected },
  );

const daemonGone =
  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";

export const shardFaults: readonly ShardFault[] = [
  row("the commands of shards fail", { status: 7 }, async (_, once) => once().ended, {
    status: 7,
    says: ["shard_1: The command exited with status 7.", "2 of 2 shards failed: shard_1, shard_2."],
    keepsCluster: false,
  }),
  signalled("SIGINT", { id: "interrupted", says: ["Remove what was created: 2 done"] }),
  signalled("SIGKILL", {}),
  row(
    "the daemon goes away while a shard's containers are created",
    {},
    async (world, once) => {
      await using struck = world.strike({
        call: "create",
        when: "before",
        answer: daemonGone,
        times: 1,
      });
      const ended = await once().ended;
      if (!struck.hasStruck()) throw new Error(`nothing was created:\n${ended.stderr}`);
      return ended;
    },
    {
      status: 5,
      id: "machine-not-set-up",
      says: [/shard_[12]: it failed/, /1 of 2 shards failed: shard_[12]\./],
      keepsCluster: false,
    },
  ),
];
