# The last 256 bytes of a firmware, at 0xff00. The boot sector is its first bytes, and it only runs that. x86-probe.ts
# has its bytes.
  .intel_syntax noprefix
  .code16
copy:
  cld
  mov ax, 0xf000
  mov ds, ax
  xor ax, ax
  mov es, ax
  xor si, si
  mov di, 0x7c00
  mov cx, 256
  rep movsw
  # The firmware interrupt that the boot sector uses
  mov word ptr es:[0x48], offset memory_size
  mov word ptr es:[0x4a], 0xf000
  ljmp 0, 0x7c00
memory_size:
  mov ax, 640
  iret
  .org 0xf0
  # The processor starts here
  jmp copy
  .org 0x100
