import { ClusterError } from "../../../errors.ts";
import { tryAsDisk, tryAsFirmware } from "./accelerator-trial.ts";
import type { Architecture } from "./architecture.ts";
import type { BrokenAccelerator } from "./broken-accelerator.ts";
import type { Qemu } from "./qemu.ts";
import { type Accelerator, accelerators } from "../options.ts";

/** How long each trial may take. It takes a few tenths of a second if nothing is wrong; a busy computer slows translation down. */
export const trialLimitsMs: Readonly<Record<Accelerator, number>> = { kvm: 10_000, hvf: 10_000, tcg: 30_000 };

export interface AcceleratorTrial {
  readonly accelerator: Accelerator;
  /** Why it doesn't work here; `undefined`: it works. */
  readonly problem: string | undefined;
}

/**
 * Tries each accelerator by running a program under it, since nothing else is reliable: `/dev/kvm` may exist and open, and yet fail as soon as a
 * machine runs, or never finish.
 */
export async function tryAccelerators(
  qemu: Qemu,
  platform: NodeJS.Platform,
  limitsMs: Readonly<Record<Accelerator, number>>,
  signal: AbortSignal,
): Promise<readonly AcceleratorTrial[]> {
  const absent = platform === "darwin" ? "kvm" : "hvf";
  const candidates = accelerators.filter((accelerator) => accelerator !== absent);
  return await Promise.all(
    candidates.map(async (accelerator) => ({
      accelerator,
      problem: await problemWithin(limitsMs[accelerator], async (inner) => problemOf(qemu, accelerator, inner), signal),
    })),
  );
}

/** Translation has no hardware that could differ from what firmware expects. */
async function problemOf(qemu: Qemu, accelerator: Accelerator, signal: AbortSignal): Promise<string | undefined> {
  const problem = await tryAsFirmware(qemu, accelerator, signal);
  return problem !== undefined || accelerator === "tcg" ? problem : await tryAsDisk(qemu, accelerator, signal);
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

/** Returns the forced accelerator, or the first that works. Throws `machine-not-set-up` if the forced one doesn't work, or none does. */
export function chooseAccelerator(
  trials: readonly AcceleratorTrial[],
  { forced, broken }: AcceleratorChoice,
  { packages }: Architecture,
): Accelerator {
  if (forced !== undefined) return assertWorks(trials, forced);
  const working = trials.filter(({ problem }) => problem === undefined);
  const chosen = working.find(({ accelerator }) => accelerator !== broken?.accelerator) ?? working[0];
  if (chosen !== undefined) return chosen.accelerator;
  const reasons = trials.map(({ accelerator, problem }) => `${accelerator}: ${problem}`).join("; ");
  throw new ClusterError("machine-not-set-up", `QEMU cannot run machines here: ${reasons}.`, {
    hint: `Install a QEMU with tcg, which works on any machine (Debian and Ubuntu: ${packages}).`,
    facts: { trials },
  });
}

function assertWorks(trials: readonly AcceleratorTrial[], forced: Accelerator): Accelerator {
  const trial = trials.find(({ accelerator }) => accelerator === forced);
  if (trial !== undefined && trial.problem === undefined) return forced;
  const reason = trial?.problem ?? "this operating system does not have it";
  throw new ClusterError("machine-not-set-up", `The accelerator ${forced} does not work here: ${reason}.`, {
    hint: "Omit `accelerator` to use the best one that works.",
    facts: { trials },
  });
}

/** If a trial hangs, the next accelerator gets its turn instead of everything failing. */
async function problemWithin(
  limitMs: number,
  attempt: (signal: AbortSignal) => Promise<string | undefined>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const limit = AbortSignal.timeout(limitMs);
  try {
    return await attempt(AbortSignal.any([signal, limit]));
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) return "it hangs";
    throw error;
  }
}
