/** A disk that firmware boots from, and that then does nothing: its first sector halts the processor. */
export function bootableDisk(): Uint8Array<ArrayBuffer> {
  const disk = new Uint8Array(1_048_576);
  disk.set([0xfa, 0xf4, 0xeb, 0xfd]);
  return signed(disk);
}

/** A disk whose boot loader hands back to the firmware, which then has nothing else to boot from. */
export function disappointingDisk(): Uint8Array<ArrayBuffer> {
  const disk = new Uint8Array(1_048_576);
  disk.set([0xcd, 0x18, 0xf4]);
  return signed(disk);
}

function signed(disk: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  disk.set([0x55, 0xaa], 510);
  return disk;
}
