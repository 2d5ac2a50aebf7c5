/** Faults of a container engine at each of its calls, and of the containers. */
import { onlySsh } from "../../support/only-ssh.ts";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { ContainerWorld, EngineFault } from "../worlds/container-world.ts";
import type { EngineAnswer } from "../worlds/engine-answers.ts";
import { usualAnswers } from "../worlds/cloud-world.ts";
import { created, failed, struck } from "./cloud-injections.ts";

type ContainerFault = Fault<ContainerWorld>;

export const at = (
  name: string,
  fault: EngineFault,
  expected: Expected,
  seconds = 8,
): ContainerFault => ({
  name,
  place: "engine",
  seconds,
  strike: async (world) => world.strike(fault),
  expected,
});

export const killed: EngineAnswer = { status: 0, stdout: "", stderr: "", isKilled: true };
const said = (stdout: string): EngineAnswer => ({ status: 0, stdout, stderr: "", isKilled: false });

const daemonGone =
  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
const changes = ["network create", "create", "cp", "start"] as const;

/** Each call that changes something, with each way to fail: nothing is left, also of a call that was carried out and not answered. */
const changing = changes.flatMap((call): readonly ContainerFault[] => [
  at(
    `${call} fails`,
    { call, when: "before", answer: "something odd happened" },
    failed("engine-failed", "something odd happened"),
  ),
  at(
    `${call} is carried out, and fails`,
    { call, when: "after", answer: "something odd happened", times: 1 },
    failed("engine-failed", "something odd happened"),
  ),
  at(
    `${call} is killed`,
    { call, when: "after", answer: killed, times: 1 },
    failed("engine-failed", /SIGKILL|killed|signal|status/),
  ),
  at(
    `the daemon goes away at ${call}`,
    { call, when: "before", answer: daemonGone, times: 1 },
    failed("machine-not-set-up", "Docker does not answer", 5),
  ),
  at(
    `the engine's disk is full at ${call}`,
    { call, when: "before", answer: "write /var/lib/docker/x: no space left on device", times: 1 },
    failed("capacity-lacking", "disk is full"),
  ),
]);

const asking: readonly ContainerFault[] = [
  at(
    "no network addresses are left",
    {
      call: "network create",
      when: "before",
      answer: "could not find an available, non-overlapping IPv4 address pool among the defaults",
    },
    failed("capacity-lacking", "no free addresses"),
  ),
  at(
    "the socket may not be used",
    {
      call: "version",
      when: "before",
      answer: "permission denied while trying to connect to the Docker daemon socket",
    },
    failed("machine-not-set-up", "You may not use Docker", 5),
  ),
  at(
    "the daemon is not running",
    { call: "version", when: "before", answer: daemonGone },
    failed("machine-not-set-up", "does not answer", 5),
  ),
  at(
    "docker greets instead of answering",
    { call: "version", when: "before", answer: said("Welcome!\n") },
    failed("machine-not-set-up", "Welcome!", 5),
  ),
  at(
    "docker answers with nothing",
    { call: "version", when: "before", answer: said("") },
    failed("machine-not-set-up", "docker version", 5),
  ),
  at(
    "info answers with nothing",
    { call: "info", when: "before", answer: said("") },
    failed("machine-not-set-up", "docker info", 5),
  ),
  at(
    "info answers with half of its JSON",
    { call: "info", when: "before", answer: said('{"ServerVersion":"24.0') },
    failed("machine-not-set-up", "docker info", 5),
  ),
  at(
    "the node's image is missing",
    { call: "image inspect", when: "before", answer: "No such image: localhost/node" },
    failed("image-not-found", "localhost/node"),
  ),
  at(
    "the containers are described as garbage once",
    { call: "container inspect", when: "before", answer: said("<html>"), times: 1 },
    failed("machine-not-set-up", "docker container", 5),
  ),
  at(
    "the inventory fails",
    { call: "ps", when: "before", answer: "something odd happened", times: 1 },
    failed("engine-failed", "something odd happened"),
  ),
  at(
    "no trial of rights succeeds",
    { call: "run", when: "before", answer: "operation not permitted" },
    created,
  ),
];

export const lingering = async ({ answers }: ContainerWorld): Promise<Struck> => {
  answers.replace([{ pattern: "artifact\\.sh --genconf", delayMs: 600_000 }, ...usualAnswers]);
  return struck(() => answers.replace(usualAnswers));
};

export const when =
  (text: string, deed: (world: ContainerWorld, id: string) => Promise<unknown>) =>
  async (world: ContainerWorld): Promise<Ended> => {
    const running = world.start(world.createWords);
    await running.said(text);
    await deed(world, world.engine.containers[0]!.id);
    return running.ended;
  };

export const gone: Expected = {
  ...failed("machine-failed", /(?:master|agent)_0/),
  withinMs: 60_000,
};

const containers: readonly ContainerFault[] = [
  {
    name: "a container ends during the configuration",
    place: "machine",
    seconds: 15,
    strike: lingering,
    act: when("Configure …", async ({ engine }, id) => engine.kill(id)),
    expected: gone,
  },
  {
    name: "a container is removed during the configuration",
    place: "machine",
    seconds: 15,
    strike: lingering,
    act: when("Configure …", async ({ engine }, id) => engine.remove(id)),
    expected: gone,
  },
  {
    name: "the artifact refuses the configuration, and each removal fails twice",
    place: "engine",
    seconds: 12,
    strike: async (world) => {
      world.answers.replace([
        { pattern: "artifact\\.sh --genconf", status: 1, stdout: "resolvers: must be a list\n" },
        ...usualAnswers,
      ]);
      const removal = world.strike({
        call: "rm",
        when: "before",
        answer: "removal failed: device or resource busy",
        times: 2,
      });
      return {
        hasStruck: () => removal.hasStruck(),
        [Symbol.asyncDispose]: async () => {
          world.answers.replace(usualAnswers);
          await removal[Symbol.asyncDispose]();
        },
      };
    },
    expected: failed("configuration-refused", "resolvers: must be a list"),
  },
  {
    name: "Ctrl-C during the configuration",
    place: "computer",
    strike: lingering,
    act: async (world) => {
      const running = world.start(world.createWords);
      await running.said("Configure …");
      running.interrupt("SIGINT");
      return running.ended;
    },
    expected: {
      status: "SIGINT",
      id: "interrupted",
      says: ["Remove what was created: done"],
      keepsCluster: false,
    },
  },
  {
    name: "kill -9 during the configuration",
    place: "computer",
    strike: lingering,
    act: async (world) => {
      const running = world.start(world.createWords);
      await running.said("Configure …");
      running.interrupt("SIGKILL");
      return running.ended;
    },
    expected: { status: "SIGKILL", says: [], keepsCluster: false },
  },
  {
    name: "no engine on the PATH",
    place: "computer",
    act: async (world) =>
      world.run(world.createWords, { environment: { PATH: await onlySsh(world.folder) } }),
    expected: failed("machine-not-set-up", "no executable program docker", 5),
  },
];

export const engineFaults: readonly ContainerFault[] = [...changing, ...asking, ...containers];
