/** Faults while `once` saves the cluster in which its command has failed. The cluster is removed, and the exit code stays the command's. */
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import { until } from "../../support/until.ts";
import type { Expected, Fault } from "../fault.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { endedBy, struck } from "./cloud-injections.ts";
import { isReady, onceWords, works } from "./once-faults.ts";

const target = ({ folder }: VmWorld): string => join(folder, "out", "cluster.zst");

/** Writing it takes long enough to be interrupted. */
const savedBytes = 150_000_000;

interface Saving {
  readonly prepare?: (world: VmWorld) => Promise<unknown>;
  readonly during?: (world: VmWorld, running: ReturnType<VmWorld["start"]>) => Promise<void>;
  readonly cleanUp?: (world: VmWorld) => Promise<unknown>;
  readonly isSaved?: true;
}

const row = (
  name: string,
  { prepare, during, cleanUp, isSaved }: Saving,
  expected: Expected,
  lack?: string,
): Fault<VmWorld> => ({
  name,
  place: "computer",
  seconds: 15,
  lack,
  strike: async (world) => {
    await world.answer(isReady, works({ status: 7 }));
    await world.makeTemplates({ savedBytes });
    await prepare?.(world);
    return struck(async () => {
      await world.answer();
      await world.makeTemplates();
      await cleanUp?.(world);
    });
  },
  act: async (world): Promise<Ended> => {
    const [once = "", ...words] = onceWords(world);
    const running = world.start([once, "--save-on-failure", target(world), ...words]);
    await during?.(world, running);
    const ended = await running.ended;
    if ((await Bun.file(target(world)).exists()) !== (isSaved === true))
      throw new Error(`the file is ${isSaved === true ? "missing" : "there"}:\n${ended.stderr}`);
    return ended;
  },
  expected,
});

const failedCommand = (...says: Expected["says"]): Expected => ({
  status: 7,
  says: ["The command exited with status 7.", ...says, "Remove what was created: done"],
  keepsCluster: false,
});

const signalled = (signal: "SIGINT" | "SIGKILL"): Fault<VmWorld> =>
  row(
    `${signal} while once saves the cluster`,
    {
      during: async (world, running) => {
        await until("the file is begun", async () => Bun.file(`${target(world)}.part`).exists());
        running.interrupt(signal);
      },
      // Its next save to this file would replace it.
      cleanUp: async (world) => signal === "SIGKILL" && rm(`${target(world)}.part`),
    },
    endedBy(signal),
  );

export const saveFaults: readonly Fault<VmWorld>[] = [
  row(
    "the command of once fails, and the cluster is saved",
    { isSaved: true },
    failedCommand("holds the secrets of the cluster", "create --from"),
  ),
  signalled("SIGINT"),
  signalled("SIGKILL"),
  row(
    "the command of once fails, and QEMU cannot save the cluster",
    { prepare: async (world) => world.makeTemplates({ canSave: false }) },
    failedCommand("The cluster could not be saved: QEMU could not write the memory", "something odd"),
  ),
  row(
    "the command of once fails, and the disk is full",
    {
      prepare: async (world) => {
        const folder = dirname(target(world));
        await mkdir(folder);
        await Bun.$`mount -t tmpfs -o size=20m tmpfs ${folder}`.quiet();
      },
      cleanUp: async (world) => Bun.$`umount ${dirname(target(world))}`.quiet(),
    },
    failedCommand("The cluster could not be saved: The disk is full"),
    process.getuid?.() === 0 ? undefined : "only root mounts file systems",
  ),
];
