/** Faults that meet `create --from` on containers. The source and its snapshot are as before, and nothing is left of the copy. */
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault } from "../fault.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import { failed } from "./cloud-injections.ts";

type CopyFault = Fault<ContainerWorld>;

const source = ["--engine", "docker", "-c", "source"];

/** Saves another cluster, lets the copy meet something, and destroys the other cluster. */
const copying =
  (
    meet: (
      world: ContainerWorld,
      copy: () => ReturnType<ContainerWorld["start"]>,
    ) => Promise<Ended>,
  ) =>
  async (world: ContainerWorld): Promise<Ended> => {
    const succeed = async (words: readonly string[]): Promise<string> => {
      const { status, stdout, stderr } = await world.run(words);
      if (status !== 0) throw new Error(stderr);
      return stdout;
    };
    await succeed(world.createWords.map((word) => (word === "faulty" ? "source" : word)));
    await succeed(["snapshot", "create", "saved", ...source]);
    const words = ["create", "--engine", "docker", "--from", "source:saved", "-c", "faulty"];
    const ended = await meet(world, () => world.start(words));
    await succeed(["run", ...source, "--no-test-env", "true"]);
    await succeed(["destroy", "--yes", ...source]);
    return ended;
  };

const row = (name: string, act: CopyFault["act"], expected: Expected): CopyFault => ({
  name,
  place: "engine",
  seconds: 10,
  ...(act !== undefined && { act }),
  expected,
});

const meets = (said: string, signal: NodeJS.Signals): CopyFault["act"] =>
  copying(async (_, copy) => {
    const running = copy();
    await running.said(said);
    running.interrupt(signal);
    return running.ended;
  });

const daemonGone =
  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";

export const copyFaults: readonly CopyFault[] = [
  row(
    "a copy's snapshot lacks an image",
    copying(async (world, copy) => {
      world.engine.loseImage();
      return copy().ended;
    }),
    failed("snapshot-unusable", 'The snapshot "saved" of cluster "source" is incomplete.'),
  ),
  row(
    "a copy is killed while its containers are created",
    meets("Copy file systems …", "SIGKILL"),
    {
      status: "SIGKILL",
      says: [],
      keepsCluster: false,
    },
  ),
  row("a copy is killed while its containers start", meets("Start containers …", "SIGKILL"), {
    status: "SIGKILL",
    says: [],
    keepsCluster: false,
  }),
  row("a copy gets SIGINT while its nodes boot", meets("Boot …", "SIGINT"), {
    status: "SIGINT",
    id: "interrupted",
    says: ["Remove what was created: done"],
    keepsCluster: false,
  }),
  row(
    "the daemon goes away while a copy's containers are created",
    copying(async (world, copy) => {
      await using struck = world.strike({
        call: "create",
        when: "before",
        answer: daemonGone,
        times: 1,
      });
      const ended = await copy().ended;
      if (!struck.hasStruck()) throw new Error(`nothing was created:\n${ended.stderr}`);
      return ended;
    }),
    failed("machine-not-set-up", "Docker does not answer", 5),
  ),
];
