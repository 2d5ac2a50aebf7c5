/**
 * A program that shows whether an accelerator can run what boot loaders do. For example, kvm-pvm of
 * Linux 6.18 runs a few instructions well, but then stops every machine at the return from an
 * interrupt in protected mode. boot-sector.s and firmware.s are its source. A test assembles them,
 * and compares the bytes.
 */

/** QEMU's exit status if all went well: the debug exit doubles the value written to it and adds one. */
export const x86ProbeStatus = 0x10 * 2 + 1;

export const x86ProbeArguments = ["-device", "isa-debug-exit,iobase=0xf4,iosize=1"] as const;

const program = bytesOf(`
  fa fc 31 c0 8e d8 8e c0 8e d0 bc 00 7c be 00 7c bf 00 60 b9 00 01 f3 a5
  be 00 7c bf 00 60 b9 00 01 f3 a7 75 23 cd 12 85 c0 74 1d e4 92 0c 02 e6
  92 0f 01 16 54 7d 0f 01 1e 5a 7d 0f 20 c0 0c 01 0f 22 c0 ea 50 7c 08 00
  b0 01 e6 f4 fa f4 eb fc 66 b8 10 00 8e d8 8e c0 8e d0 bc 00 7c 00 00 c7
  05 00 10 00 00 d3 7c 08 00 c7 05 04 10 00 00 00 8e 00 00 31 db cd 00 60
  61 bf 00 20 00 00 31 c0 b9 00 0c 00 00 f3 ab c7 05 00 20 00 00 03 30 00
  00 c7 05 00 30 00 00 03 40 00 00 c7 05 00 40 00 00 83 00 00 00 0f 20 e0
  0c 20 0f 22 e0 b8 00 20 00 00 0f 22 d8 b9 80 00 00 c0 0f 32 80 cc 01 0f
  30 0f 20 c0 0d 00 00 00 80 0f 22 c0 ea d5 7c 00 00 18 00 43 cf c7 04 25
  00 10 00 00 30 7d 18 00 c7 04 25 04 10 00 00 00 8e 00 00 48 c7 04 25 08
  10 00 00 00 00 00 00 cd 00 be 00 7c 00 00 bf 00 60 00 00 b9 40 00 00 00
  f3 48 a5 be 00 7c 00 00 bf 00 60 00 00 b9 40 00 00 00 f3 48 a7 75 09 83
  fb 02 75 04 b0 10 eb 02 b0 01 e6 f4 fa f4 eb fc ff c3 48 cf 00 00 00 00
  00 00 00 00 ff ff 00 00 00 9a cf 00 ff ff 00 00 00 92 cf 00 ff ff 00 00
  00 9a af 00 1f 00 34 7d 00 00 0f 00 00 10
`);

const copyProgram = bytesOf(`
  fc b8 00 f0 8e d8 31 c0 8e c0 31 f6 bf 00 7c b9 00 01 f3 a5 26 c7 06 48
  00 27 ff 26 c7 06 4a 00 00 f0 ea 00 7c 00 00 b8 80 02 cf
`);

function bytesOf(dump: string): Uint8Array {
  return Buffer.from(dump.replaceAll(/\s/g, ""), "hex");
}

/** Loaded at 0x7c00. Its last bytes mark a boot sector. */
export function bootSector(): Uint8Array {
  const sector = new Uint8Array(512);
  sector.set(program);
  sector.set([0x55, 0xaa], 510);
  return sector;
}

/** The last 256 bytes of a firmware. The processor starts at the jump. */
export function firmwareEnd(): Uint8Array {
  const end = new Uint8Array(256);
  end.set(copyProgram);
  end.set([0xe9, 0x0d, 0xff], 0xf0);
  return end;
}

const romBytes = 65_536;
/** Firmware doesn't read a disk that is smaller than a cylinder. */
const diskBytes = 1_048_576;

export function x86ProbeDisk(): Uint8Array {
  const disk = new Uint8Array(diskBytes);
  disk.set(bootSector());
  return disk;
}

export function x86ProbeRom(): Uint8Array {
  const rom = new Uint8Array(romBytes);
  rom.set(bootSector());
  rom.set(firmwareEnd(), romBytes - 256);
  return rom;
}
