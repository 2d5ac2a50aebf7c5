import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { systemTemporaryFolder } from "../../system/temporary-folder.ts";
import type { Architecture } from "./architecture.ts";
import type { Qemu } from "./qemu.ts";

/** From the fastest to the slowest: Linux's, macOS's, and QEMU's own translation, which works everywhere. */
const accelerators = ["kvm", "hvf", "tcg"] as const;
export type Accelerator = (typeof accelerators)[number];

export interface AcceleratorTrial {
  readonly accelerator: Accelerator;
  /** Why it doesn't work here; `undefined`: it works. */
  readonly problem: string | undefined;
}

/**
 * Tries each by running a few instructions under it, since nothing else tells: `/dev/kvm` may be there, open, and yet fail as soon as a
 * machine runs. Each takes some hundredths of a second.
 */
export async function tryAccelerators(
  qemu: Qemu,
  platform: NodeJS.Platform,
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
      problem: await problemOf(qemu, { accelerator, rom }, signal),
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
