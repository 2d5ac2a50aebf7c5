/** The probe under a real QEMU, with a port that records its verdicts instead of the debug exit. */
import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { x86ProbeDisk, x86ProbeRom } from "../../../../../src/backend/vm/qemu/x86-probe.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const qemu = "qemu-system-x86_64";
const missing = Bun.which(qemu) === null ? `this computer has no ${qemu}` : undefined;

/** The firmware's own interrupt reports that there is no memory, so that the probe fails. */
function failingRom(): Uint8Array {
  const rom = x86ProbeRom();
  const at = Buffer.from(rom).lastIndexOf(Buffer.from([0xb8, 0x80, 0x02, 0xcf]));
  rom.set([0, 0], at + 1);
  return rom;
}

test.skipIf(missing !== undefined).each([
  ["in place of the firmware", "-bios", x86ProbeRom, [0x10]],
  ["from a disk", "-hda", x86ProbeDisk, [0x10]],
  ["when it fails", "-bios", failingRom, [1]],
] as const)(
  `the probe gives one verdict and halts, because a second one could replace it: %s (${missing ?? "here"})`,
  async (_, option, contents, verdicts) => {
    await using folder = await scratchFolder();
    const [media, record] = [join(folder.path, "media"), join(folder.path, "record")];
    await writeFile(media, contents());
    const words = [
      ..."-accel tcg -machine q35 -cpu max -m 16 -nodefaults -no-user-config -display none -monitor stdio".split(
        " ",
      ),
      "-chardev",
      `file,id=record,path=${record}`,
      "-device",
      "isa-debugcon,iobase=0xf4,chardev=record",
      ...(option === "-bios" ? [option, media] : ["-drive", `file=${media},format=raw`]),
    ];
    const child = spawn(qemu, words, { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "exit");
    try {
      const ask = (): void => void child.stdin.write("info registers\n");
      ask();
      for await (const line of createInterface({ input: child.stdout })) {
        const halted = /\bHLT=([01])/.exec(line)?.[1];
        if (halted === "1" && (await readFile(record)).length > 0) break;
        if (halted !== undefined) ask();
      }
      expect([...(await readFile(record))]).toEqual([...verdicts]);
    } finally {
      child.kill();
      await ended;
    }
  },
);
