import { constants } from "node:fs";
import { readdir, stat, statfs } from "node:fs/promises";
import { freemem, platform } from "node:os";
import { dirname, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import {
  type Check,
  type Outcome,
  fail,
  localCheck,
  pass,
  skip,
  warn,
  isOlder,
} from "../../model/check.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { stateFolder } from "../../store/state-folder.ts";
import { writeProblem } from "../../system/files/draft.ts";
import { gigabytes, isAccessible } from "../../system/files/private-file.ts";
import type { Clock, Environment, Runtime } from "../../system/runtime.ts";
import { usableMemory } from "../../system/usable-memory.ts";
import { leftovers, withForeignResources } from "../shared/foreign-resource.ts";
import { metadataCheck } from "../shared/metadata-check.ts";
import { foreignFolders, readClusters, removalCommand } from "./cluster-facts.ts";
import { imageFolder } from "./images/image-store.ts";
import { isRunning } from "./machines/machine-process.ts";
import { networkFiles } from "./machines/private-network.ts";
import { defaults } from "./options.ts";
import { leastVersion, streamVersion } from "./plan.ts";
import {
  type AcceleratorTrial,
  chooseAccelerator,
  trialLimitsMs,
  tryHost,
} from "./qemu/accelerator.ts";
import { hostArchitecture } from "./qemu/architecture.ts";
import {
  type BrokenAccelerator,
  brokenAcceleratorPath,
  readBrokenAccelerator,
} from "./qemu/broken-accelerator.ts";
import { lackingFeatures, lackingText } from "./qemu/features.ts";
import { findFirmware } from "./qemu/firmware.ts";
import { type Qemu, installation, openQemu, qemuVersion, release } from "./qemu/qemu.ts";
import { observeCluster } from "./records.ts";
import { listTemplates, templatesFolder } from "./templates/template-files.ts";
import { readSnapshotFolders } from "./snapshots/snapshot-files.ts";

/** Returns `doctor`'s checks for clusters of virtual machines, in display order. They change nothing. */
export function vmChecks(runtime: Runtime, architecture = hostArchitecture()): readonly Check[] {
  const qemu = openQemu(runtime, architecture);
  const root = join(stateFolder(runtime.environment), "vm");
  const { bytes: totalBytes } = usableMemory();
  return [
    qemuCheck(qemu),
    acceleratorCheck(qemu, platform(), runtime.environment),
    featuresCheck(qemu),
    firmwareCheck(qemu),
    memoryCheck({ totalBytes, freeBytes: Math.min(freemem(), totalBytes) }),
    diskCheck(root),
    imageCheck(runtime.environment),
    templateCheck(runtime.environment, runtime.clock),
    metadataCheck(runtime.environment),
    leftoversCheck(root, runtime.clock),
  ];
}

/** Reports what interrupted creates and expired clusters left behind, and clusters without a running machine. */
export const leftoversCheck = (root: string, clock: Clock): Check =>
  localCheck("leftovers", async () => {
    const clusters = await Promise.all((await readClusters(root)).map(observeCluster));
    const outcome = await leftovers({ clusters, root, clock, removal: removalCommand, troubleOf });
    const advice = `Remove it, or replace the link with the folder itself in ${root}`;
    return withForeignResources(outcome, await foreignFolders(root), advice);
  });

async function troubleOf({ nodes, directory }: ClusterRecord): Promise<string | undefined> {
  if (nodes.length === 0) return `${join(directory, "cluster.json")} cannot be read`;
  const incomplete = (await readSnapshotFolders(directory)).find(({ isComplete }) => !isComplete);
  if (incomplete !== undefined) return `its snapshot "${incomplete.name}" is incomplete`;
  const isIdle = nodes.length === 1 || nodes.every(({ state }) => state === "stopped");
  const isConnected = isIdle || (await isRunning(networkFiles(directory)));
  return isConnected ? undefined : "the process of its private network has ended";
}

const limitMs = 20_000;
/** Longer than any trial. */
const acceleratorLimitMs = 310_000;

function qemuCheck(qemu: Qemu): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const version = await qemuVersion(qemu, signal);
    await qemu.image(["--version"], signal);
    const text = `Version ${release(version)}`;
    if (!isOlder(version, streamVersion)) return pass(text);
    if (isOlder(version, leastVersion)) return fail(`${text} is too old.`, installation(qemu));
    return warn(
      `${text} can only run single machines: networks between machines need ${streamVersion.join(".")}.`,
      `${installation(qemu)} Until then, pass ${optionName("agents", 0)} ${optionName("publicAgents", 0)}.`,
    );
  };
  return { name: "qemu", limitMs, run };
}

export function acceleratorCheck(
  qemu: Qemu,
  system: NodeJS.Platform,
  environment: Environment,
  device = "/dev/kvm",
): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const found = await tryHost(qemu, system, trialLimitsMs, signal).catch(missingAsUndefined);
    if (found === undefined) return skip("Not checked: QEMU is missing.");
    const { trials } = found;
    const broken = await readBrokenAccelerator(environment);
    const best = chooseAccelerator(trials, { forced: undefined, broken }, qemu.architecture);
    if (broken !== undefined && hasPassed(trials, broken))
      return brokenOutcome(broken, environment);
    const problems = trials.filter(({ problem }) => problem !== undefined);
    const others = problems.map(
      ({ accelerator, problem }) => `${accelerator} does not work: ${problem}`,
    );
    if (best !== "tcg") return pass(best, others);
    return warn(
      `Only tcg works, which is about ten times slower. ${others.join("; ")}.`,
      system === "linux"
        ? await kvmRemedy(device)
        : "Use a QEMU that was built with hvf, such as Homebrew's.",
    );
  };
  return { name: "accelerator", limitMs: acceleratorLimitMs, run };
}

/** Advises a group only if membership would open the device. */
async function kvmRemedy(device: string): Promise<string> {
  if (!(await isAccessible(device, constants.F_OK)))
    return `There is no ${device}. Enable the processor's virtualization in this computer's firmware; on a virtual machine or cloud instance, choose one with nested virtualization.`;
  if (!(await isAccessible(device, constants.R_OK | constants.W_OK)))
    return `This user may not open ${device}. Join its group, then log in again:\n    sudo usermod -aG kvm $USER`;
  return `${device} can be opened, but its kernel cannot run machines here. On a virtual machine, choose one with nested virtualization.`;
}

const hasPassed = (
  trials: readonly AcceleratorTrial[],
  { accelerator }: BrokenAccelerator,
): boolean =>
  trials.some((trial) => trial.accelerator === accelerator && trial.problem === undefined);

const brokenOutcome = (
  { accelerator, reason }: BrokenAccelerator,
  environment: Environment,
): Outcome =>
  warn(
    `${accelerator} passes its test, but has broken a machine since this computer started: ${outside(reason)}. ` +
      "Until the next restart, machines run under tcg, which is about ten times slower.",
    `To try again: cluster-vm create --accelerator ${accelerator}, or remove ${brokenAcceleratorPath(environment)}`,
  );

function featuresCheck(qemu: Qemu): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const lacking = await lackingFeatures(qemu, signal).catch(missingAsUndefined);
    if (lacking === undefined) return skip("Not checked: QEMU is missing.");
    if (lacking.length === 0) return pass("user networks, vvfat");
    return fail(lackingText(lacking), installation(qemu));
  };
  return { name: "qemu features", limitMs, run };
}

/**
 * Checks the firmware only if machines have none built in. A missing firmware is a ClusterError
 * that says what to do.
 */
function firmwareCheck(qemu: Qemu): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const found = await findFirmware(qemu, signal).then(
      (firmware) => ({ firmware }),
      missingAsUndefined,
    );
    if (found === undefined) return skip("Not checked: QEMU is missing.");
    return pass(found.firmware?.program.path ?? `${qemu.architecture.firmware}, built in`);
  };
  return { name: "firmware", limitMs, run };
}

/** Another check reports that QEMU is missing. */
function missingAsUndefined(error: unknown): undefined {
  if (error instanceof ClusterError && error.facts["program"] !== undefined) return undefined;
  throw error;
}

/** A create without options creates a master, an agent and a public agent. */
const usualNodes = 3;
const usualMemoryBytes = usualNodes * defaults.memoryMegabytes * 1024 ** 2;
/** An image, plus what three nodes with a platform write to their disks. */
const usualDiskBytes = 10e9;

export const memoryCheck = ({
  totalBytes,
  freeBytes,
}: {
  readonly totalBytes: number;
  readonly freeBytes: number;
}): Check =>
  localCheck("memory", async () => {
    const text = `${gigabytes(freeBytes)} of ${gigabytes(totalBytes)} GB are free`;
    if (freeBytes >= usualMemoryBytes) return pass(text);
    return warn(
      `${text}, but ${usualNodes} nodes of ${defaults.memoryMegabytes} MB may use ${gigabytes(usualMemoryBytes)} GB.`,
      `Close other programs, use fewer nodes, or give them less memory with ${optionName("memory")}.`,
    );
  });

/** `folder` is where the machines' disks will be; it need not exist yet. */
export const diskCheck = (folder: string): Check =>
  localCheck("disk", async () => {
    const free = await freeSpace(folder);
    const text = `${gigabytes(free)} GB free at ${folder}`;
    if (free >= usualDiskBytes) return pass(text);
    return warn(
      `There are only ${text}, but a small cluster may need ${gigabytes(usualDiskBytes)} GB.`,
      "Free some space, or set XDG_STATE_HOME to another folder.",
    );
  });

export const imageCheck = (environment: Environment): Check =>
  localCheck("image cache", async () => {
    const folder = imageFolder(environment);
    const problem = await writeProblem(folder);
    if (problem !== undefined) {
      const remedy =
        "Make sure that you may write to it, and that its disk isn't full, or set XDG_CACHE_HOME to another folder.";
      return fail(`Cannot write to the image cache ${folder}: ${problem.text}.`, remedy);
    }
    const names = await readdir(folder).catch(() => []);
    const images = names.filter((name) => /\.(?:img|zst)$/.test(name));
    if (images.length === 0) return skip(`None in ${folder} yet: the first create downloads one.`);
    const sizes = await Promise.all(
      images.map(async (name) => (await stat(join(folder, name))).size),
    );
    const total = sizes.reduce((sum, size) => sum + size, 0);
    return pass(`${images.length} in ${folder}, ${gigabytes(total)} GB`, images.toSorted());
  });

const templateCheck = (environment: Environment, clock: Clock): Check =>
  localCheck("templates", async () => {
    const folder = templatesFolder(environment);
    const templates = await listTemplates(folder);
    if (templates.length === 0) return skip(`None in ${folder} yet: create makes them.`);
    const total = templates.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const lines = templates.map(({ name, sizeBytes, facts, users }) => {
      const hours = Math.floor((clock.now() - Date.parse(facts?.createdAt ?? "")) / 3_600_000);
      const state = facts === undefined ? "damaged" : (facts.problem ?? `${hours} h old`);
      return `${name}: ${gigabytes(sizeBytes)} GB, ${state}, ${users.length === 0 ? "unused" : "in use"}`;
    });
    return pass(`${templates.length} in ${folder}, ${gigabytes(total)} GB`, lines);
  });

async function freeSpace(folder: string): Promise<number> {
  const space = await statfs(folder).catch(() => undefined);
  if (space !== undefined) return space.bavail * space.bsize;
  return folder === dirname(folder) ? 0 : await freeSpace(dirname(folder));
}
