import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  bootSector,
  firmwareEnd,
  x86ProbeDisk,
  x86ProbeRom,
} from "../../../../../src/backend/vm/qemu/x86-probe.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const missing = ["as", "ld"].find((program) => Bun.which(program) === null);

test.skipIf(missing !== undefined || process.arch !== "x64").each([
  ["boot-sector", "0x7c00", bootSector],
  ["firmware", "0xff00", firmwareEnd],
] as const)(
  `the bytes of the %s are what an assembler makes of its source (${missing ?? "here"})`,
  async (name, address, bytes) => {
    await using folder = await scratchFolder();
    const source = join(import.meta.dir, `../../../../../src/backend/vm/qemu/${name}.s`);
    const [object, binary] = [join(folder.path, "a.o"), join(folder.path, "a.bin")];
    await Bun.$`as --64 -o ${object} ${source}`.quiet();
    await Bun.$`ld -m elf_x86_64 -e 0 -Ttext=${address} --oformat binary -o ${binary} ${object}`.quiet();
    expect(Buffer.from(bytes()).toString("hex")).toBe(
      Buffer.from(await Bun.file(binary).bytes()).toString("hex"),
    );
  },
);

test("firmware finds a boot sector, and the processor its first instruction", () => {
  const disk = x86ProbeDisk();
  expect(disk.slice(510, 512)).toEqual(Uint8Array.from([0x55, 0xaa]));
  const rom = x86ProbeRom();
  expect(rom).toHaveLength(65_536);
  // A jump.
  expect(rom[0xfff0]).toBe(0xe9);
  expect(rom.slice(0, 512)).toEqual(disk.slice(0, 512));
});
