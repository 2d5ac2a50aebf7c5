/**
 * A program that shows whether an accelerator can run what boot loaders do. It goes through real, protected and long mode, with string moves, port
 * I/O, interrupts and paging, and ends QEMU through its debug exit. For example, kvm-pvm of Linux 6.18 runs a few instructions well, but then stops
 * every machine at the return from an interrupt in protected mode.
 */

/**
 * An instruction or a directive: its bytes in hexadecimal, and the source that GNU as assembles to them. A test assembles these lines and compares.
 */
type Line = readonly [bytes: string, source: string];

/** QEMU's exit status if all went well: the debug exit doubles the value written to it and adds one. */
export const x86ProbeStatus = 0x10 * 2 + 1;
export const x86ProbeArguments = ["-device", "isa-debug-exit,iobase=0xf4,iosize=1"] as const;

/** Loaded at 0x7c00, like every boot sector. */
export const bootSectorLines: readonly Line[] = [
  ["", ".intel_syntax noprefix"],
  ["", ".code16"],
  ["", "start:"],
  ["fa", "cli"],
  ["fc", "cld"],
  ["31c0", "xor ax, ax"],
  ["8ed8", "mov ds, ax"],
  ["8ec0", "mov es, ax"],
  ["8ed0", "mov ss, ax"],
  ["bc007c", "mov sp, 0x7c00"],
  // Real mode: string moves
  ["be007c", "mov si, 0x7c00"],
  ["bf0060", "mov di, 0x6000"],
  ["b90001", "mov cx, 256"],
  ["f3a5", "rep movsw"],
  ["be007c", "mov si, 0x7c00"],
  ["bf0060", "mov di, 0x6000"],
  ["b90001", "mov cx, 256"],
  ["f3a7", "repe cmpsw"],
  ["7523", "jne failed16"],
  // A firmware interrupt
  ["cd12", "int 0x12"],
  ["85c0", "test ax, ax"],
  ["741d", "jz failed16"],
  // Port I/O: the gate of the 21st address line
  ["e492", "in al, 0x92"],
  ["0c02", "or al, 2"],
  ["e692", "out 0x92, al"],
  ["0f01164d7d", "lgdt [gdt_pointer]"],
  ["0f011e537d", "lidt [idt_pointer]"],
  ["0f20c0", "mov eax, cr0"],
  ["0c01", "or al, 1"],
  ["0f22c0", "mov cr0, eax"],
  ["ea4c7c0800", "ljmp 8, offset protected"],
  ["", "failed16:"],
  ["b001", "mov al, 1"],
  ["e6f4", "out 0xf4, al"],
  ["", ".code32"],
  ["", "protected:"],
  ["66b81000", "mov ax, 16"],
  ["8ed8", "mov ds, ax"],
  ["8ec0", "mov es, ax"],
  ["8ed0", "mov ss, ax"],
  ["bc007c0000", "mov esp, 0x7c00"],
  // Protected mode: an interrupt and back
  ["c70500100000cf7c0800", "mov dword ptr [0x1000], offset protected_handler + 0x80000"],
  ["c70504100000008e0000", "mov dword ptr [0x1004], 0x8e00"],
  ["31db", "xor ebx, ebx"],
  ["cd00", "int 0"],
  ["60", "pushad"],
  ["61", "popad"],
  // Paging, and long mode
  ["bf00200000", "mov edi, 0x2000"],
  ["31c0", "xor eax, eax"],
  ["b9000c0000", "mov ecx, 0xc00"],
  ["f3ab", "rep stosd"],
  ["c7050020000003300000", "mov dword ptr [0x2000], 0x3003"],
  ["c7050030000003400000", "mov dword ptr [0x3000], 0x4003"],
  ["c7050040000083000000", "mov dword ptr [0x4000], 0x83"],
  ["0f20e0", "mov eax, cr4"],
  ["0c20", "or al, 0x20"],
  ["0f22e0", "mov cr4, eax"],
  ["b800200000", "mov eax, 0x2000"],
  ["0f22d8", "mov cr3, eax"],
  ["b9800000c0", "mov ecx, 0xc0000080"],
  ["0f32", "rdmsr"],
  ["80cc01", "or ah, 1"],
  ["0f30", "wrmsr"],
  ["0f20c0", "mov eax, cr0"],
  ["0d00000080", "or eax, 0x80000000"],
  ["0f22c0", "mov cr0, eax"],
  ["ead17c00001800", "ljmp 24, offset long"],
  ["", "protected_handler:"],
  ["43", "inc ebx"],
  ["cf", "iretd"],
  ["", ".code64"],
  ["", "long:"],
  // Long mode: an interrupt and back, string moves
  ["c7042500100000297d1800", "mov dword ptr [0x1000], offset long_handler + 0x180000"],
  ["c7042504100000008e0000", "mov dword ptr [0x1004], 0x8e00"],
  ["48c704250810000000000000", "mov qword ptr [0x1008], 0"],
  ["cd00", "int 0"],
  ["be007c0000", "mov esi, 0x7c00"],
  ["bf00600000", "mov edi, 0x6000"],
  ["b940000000", "mov ecx, 64"],
  ["f348a5", "rep movsq"],
  ["be007c0000", "mov esi, 0x7c00"],
  ["bf00600000", "mov edi, 0x6000"],
  ["b940000000", "mov ecx, 64"],
  ["f348a7", "repe cmpsq"],
  ["7509", "jne failed"],
  ["83fb02", "cmp ebx, 2"],
  ["7504", "jne failed"],
  ["b010", "mov al, 0x10"],
  ["e6f4", "out 0xf4, al"],
  ["", "failed:"],
  ["b001", "mov al, 1"],
  ["e6f4", "out 0xf4, al"],
  ["f4", "hlt"],
  ["", "long_handler:"],
  ["ffc3", "inc ebx"],
  ["48cf", "iretq"],
  ["", "gdt:"],
  ["0000000000000000", ".quad 0"],
  ["ffff0000009acf00", ".quad 0x00cf9a000000ffff"],
  ["ffff00000092cf00", ".quad 0x00cf92000000ffff"],
  ["ffff0000009aaf00", ".quad 0x00af9a000000ffff"],
  ["", "gdt_pointer:"],
  ["1f00", ".word 31"],
  ["2d7d0000", ".long gdt"],
  ["", "idt_pointer:"],
  ["0f00", ".word 15"],
  ["00100000", ".long 0x1000"],
  ["", ".org 510"],
  ["55aa", ".word 0xaa55"],
];

/** The last 256 bytes of a firmware. The boot sector is its first bytes, and it only runs that. */
export const romLines: readonly Line[] = [
  ["", ".intel_syntax noprefix"],
  ["", ".code16"],
  ["", "copy:"],
  ["fc", "cld"],
  ["b800f0", "mov ax, 0xf000"],
  ["8ed8", "mov ds, ax"],
  ["31c0", "xor ax, ax"],
  ["8ec0", "mov es, ax"],
  ["31f6", "xor si, si"],
  ["bf007c", "mov di, 0x7c00"],
  ["b90001", "mov cx, 256"],
  ["f3a5", "rep movsw"],
  // The firmware interrupt that the boot sector uses
  ["26c706480027ff", "mov word ptr es:[0x48], offset memory_size"],
  ["26c7064a0000f0", "mov word ptr es:[0x4a], 0xf000"],
  ["ea007c0000", "ljmp 0, 0x7c00"],
  ["", "memory_size:"],
  ["b88002", "mov ax, 640"],
  ["cf", "iret"],
  ["", ".org 0xf0"],
  // The processor starts here
  ["e90dff", "jmp copy"],
  ["", ".org 0x100"],
];

const romBytes = 65_536;
/** Firmware doesn't read a disk that is smaller than a cylinder. */
const diskBytes = 1_048_576;

/** Returns a disk that boots the program. */
export function x86ProbeDisk(): Uint8Array {
  const disk = new Uint8Array(diskBytes);
  disk.set(assembled(bootSectorLines));
  return disk;
}

/** Returns firmware that consists of the program. */
export function x86ProbeRom(): Uint8Array {
  const rom = new Uint8Array(romBytes);
  rom.set(assembled(bootSectorLines));
  rom.set(assembled(romLines), romBytes - 256);
  return rom;
}

export function assembled(lines: readonly Line[]): Uint8Array {
  const bytes: number[] = [];
  for (const [hex, source] of lines) {
    const origin = /^\.org (0x[0-9a-f]+|[0-9]+)$/.exec(source)?.[1];
    if (origin !== undefined) while (bytes.length < Number(origin)) bytes.push(0);
    bytes.push(...Buffer.from(hex, "hex"));
  }
  return Uint8Array.from(bytes);
}
