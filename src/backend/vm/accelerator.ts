import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { systemTemporaryFolder } from "../../system/temporary-folder.ts";
import type { Architecture } from "./architecture.ts";
import type { Qemu } from "./qemu.ts";

/** From the fastest to the slowest: Linux's, macOS's, and QEMU's own translation, which works everywhere. */
const accelerators = ["kvm", "hvf", "tcg"] as const;
export type Accelerator = (typeof accelerators)[number];

/** How long each may take, which is some hundredths of a second where nothing is wrong. Translation is what a busy computer slows down. */
export const trialLimitsMs: Readonly<Record<Accelerator, number>> = { kvm: 10_000, hvf: 10_000, tcg: 30_000 };

export interface AcceleratorTrial {
  readonly accelerator: Accelerator;
  /** Why it doesn't work here; `undefined`: it works. */
  readonly problem: string | undefined;
}

/**
 * Tries each by running a few instructions under it, since nothing else tells: `/dev/kvm` may be there, open, and yet fail as soon as a
 * machine runs, or never come to an end.
 */
export async function tryAccelerators(
  qemu: Qemu,
  platform: NodeJS.Platform,
  limitsMs: Readonly<Record<Accelerator, number>>,
  signal: AbortSignal,
): Promise<readonly AcceleratorTrial[]> {
  const absent = platform === "darwin" ? "kvm" : "hvf";
  await using folder = await systemTemporaryFolder();
  const rom = join(folder.path, "probe.rom");
  await writeFile(rom, probeRom(qemu.architecture.probe));
  const candidates = accelerators.filter((accelerator) => accelerator !== absent);
  return await Promise.all(
    candidates.map(async (accelerator) => ({
      accelerator,
      problem: await problemWithin(
        limitsMs[accelerator],
        async (inner) => problemOf(qemu, { accelerator, rom }, inner),
        signal,
      ),
    })),
  );
}

/** The first that works. Throws `machine-not-set-up` where none does. */
export function bestAccelerator(trials: readonly AcceleratorTrial[], { packages }: Architecture): Accelerator {
  const working = trials.find(({ problem }) => problem === undefined);
  if (working !== undefined) return working.accelerator;
  const reasons = trials.map(({ accelerator, problem }) => `${accelerator}: ${problem}`).join("; ");
  throw new ClusterError("machine-not-set-up", `QEMU runs no machine here: ${reasons}.`, {
    hint: `Install a QEMU with tcg, which needs nothing of the machine (Debian and Ubuntu: ${packages}).`,
    facts: { trials },
  });
}

/** One that hangs is another one's turn, not the end of everything. */
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

async function problemOf(
  qemu: Qemu,
  { accelerator, rom }: { readonly accelerator: Accelerator; readonly rom: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const { machine, probe } = qemu.architecture;
  const words = `-accel ${accelerator} -machine ${machine} -cpu max -m 16 -nodefaults -no-user-config -display none`;
  const end = await qemu.system([...words.split(" "), "-bios", rom, ...probe.words], signal);
  if (end.status === probe.status) return undefined;
  const lines = end.stderr.split("\n").map((line) => line.replace(/^qemu[\w-]*: (?:(?:-accel \w+|error): )?/, ""));
  const said = lines.find((line) => line !== "" && !line.startsWith("warning: ")) ?? "";
  return said === "" ? `it ended with status ${end.status ?? "unknown"}` : said.replace(/[.\s]+$/, "");
}

/** 64 KiB of firmware. */
function probeRom({ instructions, start }: Architecture["probe"]): Uint8Array {
  const rom = new Uint8Array(65_536);
  rom.set(instructions, start);
  return rom;
}
