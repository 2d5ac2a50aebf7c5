import { outside } from "../../../outside-text.ts";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import { systemTemporaryFolder } from "../../../system/files/temporary-folder.ts";
import { type Qemu, qemuMessage } from "./qemu.ts";
import type { Accelerator } from "../options.ts";

/** Starts the machine only once the monitor is connected. If QEMU stopped the machine earlier, nobody would notice. */
const start = '{"execute":"qmp_capabilities"}\n{"execute":"cont"}\n';

/**
 * Runs the architecture's probe under an accelerator in place of the firmware, which takes a few hundredths of a second. Resolves with what is wrong
 * with the accelerator, or `undefined`.
 */
export async function tryAsFirmware(
  qemu: Qemu,
  accelerator: Accelerator,
  signal: AbortSignal,
): Promise<string | undefined> {
  await using folder = await systemTemporaryFolder();
  const rom = join(folder.path, "probe.rom");
  await writeFile(rom, qemu.architecture.probe.rom());
  return await problemOf(qemu, { accelerator, media: ["-bios", rom] }, signal);
}

/**
 * Lets QEMU's own firmware boot the probe, if there is such firmware. The firmware and its access to the disk exercise much more than the probe does.
 */
export async function tryAsDisk(
  qemu: Qemu,
  accelerator: Accelerator,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { disk } = qemu.architecture.probe;
  if (disk === undefined) return undefined;
  await using folder = await systemTemporaryFolder();
  const filename = join(folder.path, "probe.img");
  await writeFile(filename, disk());
  const drive = { driver: "file", "node-name": "probe", filename, "read-only": true };
  const media = ["-blockdev", JSON.stringify(drive), "-device", "virtio-blk-pci,drive=probe,bootindex=0"];
  return await problemOf(qemu, { accelerator, media }, signal);
}

interface Attempt {
  readonly accelerator: Accelerator;
  readonly media: readonly string[];
}

async function problemOf(
  qemu: Qemu,
  { accelerator, media }: Attempt,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { machine, probe } = qemu.architecture;
  const words = `-accel ${accelerator} -machine ${machine} -cpu max -m 16 -nodefaults -no-user-config -display none`;
  const monitor = "-S -chardev stdio,id=monitor,signal=off -mon chardev=monitor,mode=control";
  const run = { words: [...words.split(" "), ...monitor.split(" "), ...media, ...probe.words], stdin: start };
  const end = await runUntilStopped(qemu, run, signal);
  if ("stopped" in end)
    return `it stops machines with an internal error (${outside(qemuMessage(end.stopped, 2) ?? "no reason")})`;
  if (end.status === probe.status) return undefined;
  const said = qemuMessage(end.stderr, 1);
  return said === undefined ? `it exited with status ${end.status ?? "unknown"}` : outside(said);
}

/** If an accelerator can't continue a machine, the machine stops and its QEMU stays. In that case this resolves with what QEMU printed. */
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
