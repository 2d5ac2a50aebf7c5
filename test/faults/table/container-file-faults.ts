/** Faults while a cluster of containers is saved as a file, or created from one. */
import { mkdir, rm, truncate } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { ContainerWorld, EngineFault } from "../worlds/container-world.ts";
import { interruptWhileWriting, isBegun } from "../worlds/program-world.ts";
import { endedBy, failed, struck } from "./cloud-injections.ts";

type FileFault = Fault<ContainerWorld>;
type Act = NonNullable<FileFault["act"]>;

const on = (clusterId: string): readonly string[] => ["--engine", "docker", "-c", clusterId];

async function succeed(world: ContainerWorld, words: readonly string[]): Promise<void> {
  const { status, stderr } = await world.run(words);
  if (status !== 0) throw new Error(stderr);
}

const target = ({ folder }: ContainerWorld): string => join(folder, "out", "cluster.zst");
const save = (path: string, clusterId: string): readonly string[] => [
  "snapshot",
  "save",
  "saved",
  path,
  ...on(clusterId),
];

/** Saves the cluster. The fault strikes once it has a snapshot. */
const saving = (
  name: string,
  expected: Omit<Expected, "keepsCluster">,
  {
    strike,
    act,
  }: { readonly strike?: (world: ContainerWorld) => Promise<Struck>; readonly act?: Act },
  lack?: string,
): FileFault => ({
  name,
  place: "engine",
  seconds: 10,
  lack,
  needsCluster: true,
  strike: async (world) => {
    await succeed(world, ["snapshot", "create", "saved", ...on("faulty")]);
    await mkdir(dirname(target(world)));
    return (await strike?.(world)) ?? struck(async () => {});
  },
  act: async (world) => {
    const ended = await (act?.(world) ?? world.run(save(target(world), "faulty")));
    if (await Bun.file(target(world)).exists())
      throw new Error(`the file is there:\n${ended.stderr}`);
    return ended;
  },
  expected: { ...expected, keepsCluster: true },
});

const signalledSave = (signal: "SIGINT" | "SIGKILL"): FileFault =>
  saving(
    `${signal} while containers are saved as a file`,
    { status: signal, says: [], ...(signal === "SIGINT" && { id: "interrupted" }) },
    {
      act: async (world) => {
        const running = world.start(save(target(world), "faulty"));
        await interruptWhileWriting(target(world), running, signal);
        const ended = await running.ended;
        // What a killed program left is not in the way, and goes.
        await succeed(world, save(target(world), "faulty"));
        if (await isBegun(target(world))) throw new Error("a draft of the file is left");
        await rm(target(world));
        return ended;
      },
    },
  );

const smallDisk = async (world: ContainerWorld): Promise<Struck> => {
  const folder = dirname(target(world));
  await Bun.$`mount -t tmpfs -o size=100k tmpfs ${folder}`.quiet();
  return struck(async () => {
    await Bun.$`umount ${folder}`.quiet();
  });
};

const daemonGone =
  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
const meets =
  (fault: Omit<EngineFault, "when" | "times">) =>
  async (world: ContainerWorld): Promise<Struck> =>
    world.strike({ ...fault, when: "before", times: 1 });

/** Creates a cluster from the file of another one, which is gone. */
const loading = (
  name: string,
  expected: Expected,
  act: (world: ContainerWorld, words: readonly string[], path: string) => Promise<Ended>,
): FileFault => ({
  name,
  place: "engine",
  seconds: 10,
  act: async (world) => {
    const path = join(world.folder, "given.zst");
    await succeed(
      world,
      world.createWords.map((word) => (word === "faulty" ? "source" : word)),
    );
    await succeed(world, ["snapshot", "create", "saved", ...on("source")]);
    await succeed(world, save(path, "source"));
    await succeed(world, ["destroy", "--yes", ...on("source")]);
    return act(world, ["create", "--from", path, ...on("faulty")], path);
  },
  expected,
});

const signalledLoad = (signal: "SIGINT" | "SIGKILL", said: string): FileFault =>
  loading(
    `${signal} while a file of containers is created: ${said}`,
    endedBy(signal),
    async (world, words) => {
      const running = world.start(words);
      await running.said(said);
      running.interrupt(signal);
      return running.ended;
    },
  );

const failedLoad = (
  name: string,
  expected: Expected,
  fault: Omit<EngineFault, "when" | "times">,
): FileFault =>
  loading(name, expected, async (world, words) => {
    await using met = await meets(fault)(world);
    const ended = await world.run(words);
    if (!met.hasStruck()) throw new Error(`the engine was not asked:\n${ended.stderr}`);
    return ended;
  });

export const containerFileFaults: readonly FileFault[] = [
  signalledSave("SIGINT"),
  signalledSave("SIGKILL"),
  saving(
    "the disk is full, then containers are saved as a file",
    failed("capacity-lacking", "The disk is full"),
    { strike: smallDisk },
    process.getuid?.() === 0 ? undefined : "only root mounts file systems",
  ),
  saving(
    "the daemon goes away while containers are saved as a file",
    failed("machine-not-set-up", "Docker does not answer", 5),
    { strike: meets({ call: "save", answer: daemonGone }) },
  ),
  loading(
    "the file of containers is truncated",
    failed("snapshot-unusable", /given\.zst is (?:incomplete|damaged)/),
    async (world, words, path) => {
      await truncate(path, Bun.file(path).size - 100_000);
      return world.run(words);
    },
  ),
  signalledLoad("SIGINT", "Load the file …"),
  signalledLoad("SIGKILL", "Load the file …"),
  signalledLoad("SIGINT", "Start containers …"),
  signalledLoad("SIGKILL", "Copy file systems …"),
  failedLoad(
    "the engine's disk is full when it loads a file",
    failed("capacity-lacking", "Docker's disk is full"),
    {
      call: "load",
      answer: "Error processing tar file(exit status 1): write /layer.tar: no space left on device",
    },
  ),
  failedLoad(
    "the daemon goes away after it has loaded a file",
    failed("machine-not-set-up", "Docker does not answer", 5),
    { call: "create", answer: daemonGone },
  ),
];
