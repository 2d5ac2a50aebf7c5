/** What meets `stop` and `node restart` in the middle. Afterwards `start` brings back the cluster, with every node; in the cloud, they restart by themselves. */
import type { Ended, Running } from "../../e2e/support/executable.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import { until } from "../../support/until.ts";
import type { Expected, Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import type { ProgramWorld } from "../worlds/program-world.ts";
import type { VmWorld } from "../worlds/vm-world.ts";

const restart = ["node", "restart", "all"] as const;

/** How a test reaches the machines of a world. */
interface Machines<Bench> {
  readonly isShuttingDown: (world: Bench) => boolean;
  readonly running: (world: Bench) => number;
  /** Ends one of them at once. */
  readonly kill: (world: Bench) => unknown;
}

function faultsWith<Bench extends ProgramWorld>(
  machines: Machines<Bench>,
): readonly Fault<Bench>[] {
  const row = (
    name: string,
    words: readonly string[],
    meet: (world: Bench, running: Running) => Promise<unknown>,
    expected: Pick<Expected, "status" | "id">,
  ): Fault<Bench> => ({
    name,
    place: "computer",
    seconds: 10,
    needsCluster: true,
    act: async (world): Promise<Ended> => {
      const running = world.start([...words, "-c", "faulty"]);
      await until("nodes shut down", () => machines.isShuttingDown(world));
      await meet(world, running);
      const ended = await running.ended;
      await succeed(world, ["start", "-c", "faulty"]);
      await succeed(world, ["run", "-c", "faulty", "--node", "all", "--no-test-env", "true"]);
      return ended;
    },
    expected: { ...expected, says: [], keepsCluster: true, withinMs: 60_000 },
  });
  const commands = { stop: ["stop"], "a restart": restart } as const;
  const signalled = (["SIGKILL", "SIGINT"] as const).flatMap((signal) =>
    Object.entries(commands).map(([command, words]) =>
      row(
        `${signal} in the middle of ${command}`,
        words,
        async (world, running) => {
          running.interrupt(signal);
          // What has been told to shut down does so.
          await until("all nodes are stopped", () => machines.running(world) === 0);
        },
        signal === "SIGINT" ? { status: signal, id: "interrupted" } : { status: signal },
      ),
    ),
  );
  return [
    ...signalled,
    row("a node ends in the middle of a restart", restart, async (world) => machines.kill(world), {
      status: 0,
    }),
    row(
      "a second restart beside the first one",
      restart,
      async (world) => succeed(world, [...restart, "-c", "faulty"]),
      { status: 0 },
    ),
  ];
}

/** The engine refuses it once; then it works. */
const refused = (
  call: string,
  words: readonly string[],
  before: readonly string[] = [],
): Fault<ContainerWorld> => ({
  name: `the engine refuses ${call} at ${words.join(" ")}`,
  place: "engine",
  seconds: 12,
  needsCluster: true,
  strike: async (world) =>
    world.strike({ call, times: 1, when: "before", answer: "device or resource busy" }),
  act: async (world) => {
    if (before.length > 0) await succeed(world, [...before, "-c", "faulty"]);
    const ended = await world.run([...words, "-c", "faulty"]);
    await succeed(world, [...words, "-c", "faulty"]);
    await succeed(world, ["start", "-c", "faulty"]);
    return ended;
  },
  expected: {
    status: 1,
    id: "engine-failed",
    says: ["device or resource busy"],
    keepsCluster: true,
  },
});

const failingStart: Fault<VmWorld> = {
  name: "QEMU does not start at start",
  place: "qemu",
  seconds: 10,
  needsCluster: true,
  act: async (world) => {
    await succeed(world, ["stop", "-c", "faulty"]);
    await world.strike({ call: "start", stderr: "qemu-system: Unable to open file" });
    const ended = await world.run(["start", "-c", "faulty"]);
    await world.strike();
    await succeed(world, ["start", "-c", "faulty"]);
    return ended;
  },
  expected: { status: 1, id: "engine-failed", says: ["Unable to open file"], keepsCluster: true },
};

const reboot = "--no-block reboot";
const boot = (number: number): ScriptedAnswer => ({
  pattern: "boot_id",
  stdout: `boot ${number}\n`,
});

/** Something happens when both nodes have been told to restart. Then they are back, unless that has ended the cluster. */
const inCloud = (
  name: string,
  place: Fault<CloudWorld>["place"],
  meet: (world: CloudWorld, running: Running) => unknown,
  expected: Omit<Expected, "keepsCluster">,
): Fault<CloudWorld> => ({
  name,
  place,
  seconds: 8,
  needsCluster: true,
  act: async (world) => {
    await world.answer(boot(1));
    const running = world.start([...restart, "-c", "faulty"]);
    await until("the nodes restart", async () => {
      const begun = await world.begun();
      return begun.filter((text) => text.includes(reboot)).length === 2;
    });
    await meet(world, running);
    const isWhole = world.cloud.instances().every(({ state }) => state === "running");
    if (isWhole) await world.answer(boot(2));
    const ended = await running.ended;
    if (isWhole)
      await succeed(world, ["run", "-c", "faulty", "--node", "all", "--no-test-env", "true"]);
    // What is left of it, as it should be, ends with the cluster.
    else await world.endCluster();
    return ended;
  },
  expected: { ...expected, keepsCluster: true, withinMs: 60_000 },
});

/** A restart needs nothing of the API: the nodes get it by SSH. */
const cloudFaults: readonly Fault<CloudWorld>[] = [
  ...(["SIGKILL", "SIGINT"] as const).map((signal) =>
    inCloud(
      `${signal} in the middle of a restart`,
      "computer",
      (_world, running) => running.interrupt(signal),
      signal === "SIGINT"
        ? { status: signal, id: "interrupted", says: [] }
        : { status: signal, says: [] },
    ),
  ),
  ...(["throttled", "reset", "refused-key"] as const).map((trouble) =>
    inCloud(
      `the API is lost in the middle of a restart: ${trouble}`,
      "api",
      async (world) => {
        await using struck = world.failApi({ action: "DescribeInstances", trouble });
        await until("the API was asked", () => struck.hasStruck());
      },
      { status: 0, says: [] },
    ),
  ),
  inCloud(
    "a node terminates instead of restarting",
    "machine",
    async (world) => world.terminate([world.cloud.instances()[1]!.instanceId]),
    { status: 1, id: "machine-failed", says: ["agent_0", "has ended instead of starting again"] },
  ),
  {
    name: "a node refuses to restart",
    place: "machine",
    needsCluster: true,
    act: async (world) => {
      await world.answer(boot(1), {
        pattern: reboot,
        status: 1,
        stderr: "Call to Reboot failed: Access denied\n",
      });
      return world.run([...restart, "-c", "faulty"]);
    },
    expected: {
      status: 1,
      id: "remote-command-failed",
      says: ["Access denied"],
      keepsCluster: true,
    },
  },
];

async function succeed(world: ProgramWorld, words: readonly string[]): Promise<void> {
  const { status, stderr } = await world.run(words);
  if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}:\n${stderr}`);
}

export const powerFaults = {
  cloud: cloudFaults,
  container: [
    ...faultsWith<ContainerWorld>({
      isShuttingDown: ({ engine }) => engine.isShuttingDown,
      running: ({ engine }) =>
        engine.containers.filter(({ status }) => status === "running").length,
      kill: async ({ engine }) => engine.kill(engine.containers[0]!.id),
    }),
    refused("stop", ["stop"]),
    refused("kill", ["node", "stop", "all", "--force"]),
    refused("start", ["start"], ["stop"]),
    refused("pause", ["node", "pause", "all"]),
  ],
  vm: [
    ...faultsWith<VmWorld>({
      isShuttingDown: (world) => world.isShuttingDown(),
      running: (world) => world.machines().length,
      kill: (world) => process.kill(world.machines()[0]!, "SIGKILL"),
    }),
    failingStart,
  ],
};
