/**
 * Faults while `once` saves its cluster as a file: after a failure, or for later runs, which start from the file. The cluster is removed, and the exit
 * code stays the command's, whatever is wrong with the file.
 */
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault } from "../fault.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { interruptWhileWriting } from "../worlds/program-world.ts";
import { endedBy, struck } from "./cloud-injections.ts";
import { isReady, onceWords, works } from "./once-faults.ts";

const target = ({ folder }: VmWorld): string => join(folder, "out", "cluster.zst");

/** Writing it takes long enough to be interrupted. */
const savedBytes = 150_000_000;

interface Saving {
  /** Default: `--save-on-failure`. */
  readonly option?: "--cache";
  /** The exit code of the command; default: 7. */
  readonly status?: number;
  readonly prepare?: (world: VmWorld) => Promise<unknown>;
  readonly during?: (world: VmWorld, running: ReturnType<VmWorld["start"]>) => Promise<void>;
  readonly cleanUp?: (world: VmWorld) => Promise<unknown>;
  readonly isSaved?: true;
}

function wordsWith(option: Saving["option"], world: VmWorld): readonly string[] {
  const [once = "", ...words] = onceWords(world);
  return [once, option ?? "--save-on-failure", target(world), ...words];
}

const row = (
  name: string,
  { option, status = 7, prepare, during, cleanUp, isSaved }: Saving,
  expected: Expected,
  lack?: string,
): Fault<VmWorld> => ({
  name,
  place: "computer",
  seconds: 15,
  lack,
  strike: async (world) => {
    await world.answer(isReady, works({ status }));
    await world.makeTemplates({ savedBytes });
    await prepare?.(world);
    return struck(async () => {
      await world.answer();
      await world.makeTemplates();
      await cleanUp?.(world);
    });
  },
  act: async (world): Promise<Ended> => {
    const running = world.start(wordsWith(option, world));
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

const signalled = (
  name: string,
  signal: "SIGINT" | "SIGKILL",
  option?: Saving["option"],
): Fault<VmWorld> =>
  row(
    `${signal} while once saves the cluster${name}`,
    {
      ...(option && { option }),
      during: async (world, running) => {
        await interruptWhileWriting(target(world), running, signal);
      },
      // Its next save to this file would remove what is left.
      cleanUp: async (world) =>
        signal === "SIGKILL" && rm(dirname(target(world)), { recursive: true }),
    },
    endedBy(signal),
  );

const cannotSave = async (world: VmWorld): Promise<void> => world.makeTemplates({ canSave: false });

const fullDisk: Pick<Saving, "prepare" | "cleanUp"> = {
  prepare: async (world) => {
    const folder = dirname(target(world));
    await mkdir(folder);
    await Bun.$`mount -t tmpfs -o size=20m tmpfs ${folder}`.quiet();
  },
  cleanUp: async (world) => Bun.$`umount ${dirname(target(world))}`.quiet(),
};
const mountLack = process.getuid?.() === 0 ? undefined : "only root mounts file systems";

const cached = (
  name: string,
  saving: Saving,
  says: Expected["says"],
  lack?: string,
): Fault<VmWorld> =>
  row(
    name,
    { option: "--cache", status: 0, ...saving },
    { status: 0, says: [...says, "Remove what was created: done"], keepsCluster: false },
    lack,
  );

/** An earlier run writes the file. */
const writeCache = async (world: VmWorld): Promise<void> => {
  const { status, stderr } = await world.run(wordsWith("--cache", world));
  if (status !== 0) throw new Error(`the file could not be written:\n${stderr}`);
};

const cacheFaults: readonly Fault<VmWorld>[] = [
  cached("once writes the file for later runs", { isSaved: true }, ["Save the cluster as a file"]),
  signalled(" for later runs", "SIGINT", "--cache"),
  signalled(" for later runs", "SIGKILL", "--cache"),
  cached("QEMU cannot save the cluster for later runs", { prepare: cannotSave }, [
    "The cluster could not be saved",
  ]),
  cached(
    "the disk is full, then once saves the cluster for later runs",
    fullDisk,
    ["The disk is full"],
    mountLack,
  ),
  row(
    "the file for later runs is something else",
    {
      option: "--cache",
      prepare: async (world) => {
        await mkdir(dirname(target(world)));
        await Bun.write(target(world), "nothing of ours");
      },
      isSaved: true,
    },
    {
      status: 2,
      id: "bad-usage",
      says: ["is not a cluster that was saved for later runs", "--cache"],
      keepsCluster: false,
    },
  ),
  // The disks of the stand-in for QEMU are none, which unpacking them finds out.
  cached("the file of an earlier run is damaged", { prepare: writeCache, isSaved: true }, [
    "is damaged",
    "The platform is installed instead.",
  ]),
];

export const saveFaults: readonly Fault<VmWorld>[] = [
  row(
    "the command of once fails, and the cluster is saved",
    { isSaved: true },
    failedCommand("holds the secrets of the cluster", "create --from"),
  ),
  signalled("", "SIGINT"),
  signalled("", "SIGKILL"),
  row(
    "the command of once fails, and QEMU cannot save the cluster",
    { prepare: cannotSave },
    failedCommand(
      "The cluster could not be saved: QEMU could not write the memory",
      "something odd",
    ),
  ),
  row(
    "the command of once fails, and the disk is full",
    fullDisk,
    failedCommand("The cluster could not be saved: The disk is full"),
    mountLack,
  ),
  ...cacheFaults,
];
