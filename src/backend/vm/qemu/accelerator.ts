import { withinLimit } from "../../../system/time-limit.ts";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { outside } from "../../../outside-text.ts";
import { ownedTemporaryFolder } from "../../../system/files/owned-folder.ts";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import { type Accelerator, accelerators } from "../options.ts";
import type { Architecture } from "./architecture.ts";
import type { BrokenAccelerator } from "./broken-accelerator.ts";
import { type Qemu, qemuMessage } from "./qemu.ts";

/**
 * How long each trial may take. It takes a few tenths of a second if nothing is wrong, and a minute
 * on a very busy computer. Translation works everywhere; each creation waits so long for another
 * accelerator that hangs.
 */
export const trialLimitsMs: Readonly<Record<Accelerator, number>> = {
  kvm: 30_000,
  hvf: 30_000,
  tcg: 300_000,
};

export interface AcceleratorTrial {
  readonly accelerator: Accelerator;
  /** Why it doesn't work here; `undefined`: it works. */
  readonly problem: string | undefined;
}

interface HostTrial {
  readonly trials: readonly AcceleratorTrial[];
  /** Whether QEMU's sandbox works here: builds for macOS have none, and a container's own filter may refuse it. */
  readonly isSandboxed: boolean;
}

/**
 * Tries each accelerator by running a program under it, since nothing else is reliable: `/dev/kvm`
 * may exist and open, and yet fail as soon as a machine runs, or never finish. Tries translation in
 * the sandbox, and without it only if that fails.
 */
export async function tryHost(
  qemu: Qemu,
  platform: NodeJS.Platform,
  limitsMs: Readonly<Record<Accelerator, number>>,
  signal: AbortSignal,
): Promise<HostTrial> {
  const absent = platform === "darwin" ? "kvm" : "hvf";
  const candidates = accelerators.filter((accelerator) => accelerator !== absent);
  const found = { isSandboxed: false };
  const problemOf = async (
    accelerator: Accelerator,
    inner: AbortSignal,
  ): Promise<string | undefined> => {
    if (accelerator !== "tcg") return await hardwareProblem(qemu, accelerator, inner);
    found.isSandboxed = (await tryAsFirmware(sandboxed(qemu), "tcg", inner)) === undefined;
    return found.isSandboxed ? undefined : await tryAsFirmware(qemu, "tcg", inner);
  };
  const trials = await Promise.all(
    candidates.map(async (accelerator) => ({
      accelerator,
      problem: await withinLimit(
        limitsMs[accelerator],
        async (inner) => problemOf(accelerator, inner),
        hangs,
        signal,
      ),
    })),
  );
  return { trials, ...found };
}

/** Translation has no hardware that could differ from what firmware expects. */
async function hardwareProblem(
  qemu: Qemu,
  accelerator: Accelerator,
  signal: AbortSignal,
): Promise<string | undefined> {
  return (
    (await tryAsFirmware(qemu, accelerator, signal)) ?? (await tryAsDisk(qemu, accelerator, signal))
  );
}

export interface AcceleratorChoice {
  /** The accelerator that the user forces. */
  readonly forced: Accelerator | undefined;
  /** An accelerator that stopped a machine since this computer started. */
  readonly broken: BrokenAccelerator | undefined;
}

/** Explains, for people, why machines run under tcg. */
export function whyTranslated({ forced, broken }: AcceleratorChoice): string {
  if (forced !== undefined) return "it was requested";
  if (broken === undefined) return "no hardware acceleration works here";
  return `${broken.accelerator} has failed since this computer started`;
}

/**
 * Returns the forced accelerator, or the first that works. Throws `machine-not-set-up` if the
 * forced one doesn't work, or none does.
 */
export function chooseAccelerator(
  trials: readonly AcceleratorTrial[],
  { forced, broken }: AcceleratorChoice,
  { packages }: Architecture,
): Accelerator {
  if (forced !== undefined) return assertWorks(trials, forced);
  const working = trials.filter(({ problem }) => problem === undefined);
  const chosen =
    working.find(({ accelerator }) => accelerator !== broken?.accelerator) ?? working[0];
  if (chosen !== undefined) return chosen.accelerator;
  const reasons = trials.map(({ accelerator, problem }) => `${accelerator}: ${problem}`).join("; ");
  throw new ClusterError("machine-not-set-up", `QEMU cannot run machines here: ${reasons}.`, {
    hint: translationRemedy(
      trials.find(({ accelerator }) => accelerator === "tcg"),
      packages,
    ),
    facts: { trials },
  });
}

function assertWorks(trials: readonly AcceleratorTrial[], forced: Accelerator): Accelerator {
  const trial = trials.find(({ accelerator }) => accelerator === forced);
  if (trial !== undefined && trial.problem === undefined) return forced;
  const reason = trial?.problem ?? "this operating system does not have it";
  throw new ClusterError(
    "machine-not-set-up",
    `The accelerator ${forced} does not work here: ${reason}.`,
    {
      hint: `Omit ${optionName("accelerator")} to use the best one that works.`,
      facts: { trials },
    },
  );
}

/** If a trial hangs, the next accelerator gets its turn instead of everything failing. */
const hangs = (): string => "it hangs";

/** Translation has nothing to wait for, and needs nothing but the probe's file. */
function translationRemedy(trial: AcceleratorTrial | undefined, packages: string): string {
  const problem = trial?.problem ?? "";
  if (problem === hangs())
    return "Translation (tcg) works on any machine, so this one is probably too busy: try again when it has less to do.";
  const what = /could not (?:load|find|open)/i.test(problem)
    ? "a QEMU that may read this program's files, as one from a snap or Flatpak may not"
    : "a QEMU with tcg, which works on any machine";
  return `Install ${what} (Debian and Ubuntu: ${packages}).`;
}

/** Starts the machine only once the monitor is connected. If QEMU stopped the machine earlier, nobody would notice. */
const start = '{"execute":"qmp_capabilities"}\n{"execute":"cont"}\n';

/**
 * Runs the architecture's probe under an accelerator in place of the firmware, which takes a few
 * hundredths of a second. Resolves with what is wrong with the accelerator, or `undefined`.
 */
export async function tryAsFirmware(
  qemu: Qemu,
  accelerator: Accelerator,
  signal: AbortSignal,
  cpu = "max",
): Promise<string | undefined> {
  await using folder = await ownedTemporaryFolder();
  const rom = join(folder.path, "probe.rom");
  await writeFile(rom, qemu.architecture.probe.rom());
  return await trialProblem(qemu, { accelerator, cpu, media: ["-bios", rom] }, signal);
}

/**
 * Lets QEMU's own firmware boot the probe, if there is such firmware. The firmware and its access
 * to the disk exercise much more than the probe does.
 */
export async function tryAsDisk(
  qemu: Qemu,
  accelerator: Accelerator,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { disk } = qemu.architecture.probe;
  if (disk === undefined) return undefined;
  await using folder = await ownedTemporaryFolder();
  const filename = join(folder.path, "probe.img");
  await writeFile(filename, disk());
  const drive = { driver: "file", "node-name": "probe", filename, "read-only": true };
  const media = [
    "-blockdev",
    JSON.stringify(drive),
    "-device",
    "virtio-blk-pci,drive=probe,bootindex=0",
  ];
  return await trialProblem(qemu, { accelerator, cpu: "max", media }, signal);
}

/**
 * The value of `-cpu`. Hardware that lacks a part of the model refuses it, and translation leaves
 * that part out, as everywhere under tcg.
 */
export function cpuWord(
  { translatedCpu }: Architecture,
  accelerator: Accelerator,
  model: string | undefined,
): string {
  if (accelerator === "tcg") return model ?? translatedCpu;
  return model === undefined ? "host" : `${model},enforce`;
}

/** Returns why machines can't have this CPU model under a working accelerator, or `undefined`. */
export async function cpuModelProblem(
  qemu: Qemu,
  { accelerator, model }: { readonly accelerator: Accelerator; readonly model: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const cpu = cpuWord(qemu.architecture, accelerator, model);
  const attempt = async (inner: AbortSignal) => tryAsFirmware(qemu, accelerator, inner, cpu);
  return withinLimit(trialLimitsMs[accelerator], attempt, hangs, signal);
}

interface Attempt {
  readonly accelerator: Accelerator;
  readonly cpu: string;
  readonly media: readonly string[];
}

async function trialProblem(
  qemu: Qemu,
  { accelerator, cpu, media }: Attempt,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { machine, probe } = qemu.architecture;
  const words = `-accel ${accelerator} -machine ${machine} -cpu ${cpu} -m 16 -nodefaults -no-user-config -display none`;
  const monitor = "-S -chardev stdio,id=monitor,signal=off -qmp chardev:monitor";
  const run = {
    words: [...words.split(" "), ...monitor.split(" "), ...media, ...probe.words],
    stdin: start,
  };
  const end = await runUntilStopped(qemu, run, signal);
  if ("stopped" in end)
    return `it stops machines with an internal error (${outside(qemuMessage(end.stopped, 2) ?? "no reason")})`;
  if (end.status === probe.status) return undefined;
  const said = qemuMessage(end.stderr, 1);
  return said === undefined ? `it exited with status ${end.status ?? "unknown"}` : outside(said);
}

/**
 * If an accelerator can't continue a machine, the machine stops and its QEMU stays. In that case
 * this resolves with what QEMU printed.
 */
async function runUntilStopped(
  qemu: Qemu,
  run: { readonly words: readonly string[]; readonly stdin: string },
  signal: AbortSignal,
): Promise<ProgramEnd | { readonly stopped: string }> {
  const stopped = new AbortController();
  const written = { text: "" };
  const onOutput = (chunk: string): void => {
    written.text += chunk;
    if (written.text.includes('"event": "STOP"')) stopped.abort();
  };
  try {
    return await qemu.run({ ...run, onOutput }, AbortSignal.any([signal, stopped.signal]));
  } catch (error) {
    signal.throwIfAborted();
    if (stopped.signal.aborted) return { stopped: written.text.replaceAll(/^\{.*$/gm, "") };
    throw error;
  }
}

/**
 * A filter of system calls. Code that breaks out of a machine cannot load kernel modules or a new
 * kernel, mount, trace, reboot and the like. Denying more (`spawn`, `elevateprivileges`) isn't
 * possible, because it keeps QEMU from going to the background.
 */
const words = ["-sandbox", "on,obsolete=deny,resourcecontrol=deny"] as const;

export const sandboxArguments = ({
  isSandboxed,
}: {
  readonly isSandboxed: boolean;
}): readonly string[] => (isSandboxed ? words : []);

const sandboxed = (qemu: Qemu): Qemu => ({
  ...qemu,
  run: async (run, signal) => qemu.run({ ...run, words: [...words, ...run.words] }, signal),
});
