# A program that shows whether an accelerator can run what boot loaders do. It goes through real, protected and long
# mode, with string moves, port I/O, interrupts and paging, and ends QEMU through its debug exit. It halts after its
# verdict: newer debug exits (seen in QEMU 10.0) only request the end, so a second verdict would replace the first.
# Loaded at 0x7c00, like every boot sector. x86-probe.ts has its bytes.
  .intel_syntax noprefix
  .code16
start:
  cli
  cld
  xor ax, ax
  mov ds, ax
  mov es, ax
  mov ss, ax
  mov sp, 0x7c00
  # Real mode: string moves
  mov si, 0x7c00
  mov di, 0x6000
  mov cx, 256
  rep movsw
  mov si, 0x7c00
  mov di, 0x6000
  mov cx, 256
  repe cmpsw
  jne failed16
  # A firmware interrupt
  int 0x12
  test ax, ax
  jz failed16
  # Port I/O: the gate of the 21st address line
  in al, 0x92
  or al, 2
  out 0x92, al
  lgdt [gdt_pointer]
  lidt [idt_pointer]
  mov eax, cr0
  or al, 1
  mov cr0, eax
  ljmp 8, offset protected
failed16:
  mov al, 1
  out 0xf4, al
halt16:
  cli
  hlt
  jmp halt16
  .code32
protected:
  mov ax, 16
  mov ds, ax
  mov es, ax
  mov ss, ax
  mov esp, 0x7c00
  # Protected mode: an interrupt and back
  mov dword ptr [0x1000], offset protected_handler + 0x80000
  mov dword ptr [0x1004], 0x8e00
  xor ebx, ebx
  int 0
  pushad
  popad
  # Paging, and long mode
  mov edi, 0x2000
  xor eax, eax
  mov ecx, 0xc00
  rep stosd
  mov dword ptr [0x2000], 0x3003
  mov dword ptr [0x3000], 0x4003
  mov dword ptr [0x4000], 0x83
  mov eax, cr4
  or al, 0x20
  mov cr4, eax
  mov eax, 0x2000
  mov cr3, eax
  mov ecx, 0xc0000080
  rdmsr
  or ah, 1
  wrmsr
  mov eax, cr0
  or eax, 0x80000000
  mov cr0, eax
  ljmp 24, offset long
protected_handler:
  inc ebx
  iretd
  .code64
long:
  # Long mode: an interrupt and back, string moves
  mov dword ptr [0x1000], offset long_handler + 0x180000
  mov dword ptr [0x1004], 0x8e00
  mov qword ptr [0x1008], 0
  int 0
  mov esi, 0x7c00
  mov edi, 0x6000
  mov ecx, 64
  rep movsq
  mov esi, 0x7c00
  mov edi, 0x6000
  mov ecx, 64
  repe cmpsq
  jne failed
  cmp ebx, 2
  jne failed
  mov al, 0x10
  jmp verdict
failed:
  mov al, 1
verdict:
  out 0xf4, al
halt:
  cli
  hlt
  jmp halt
long_handler:
  inc ebx
  iretq
gdt:
  .quad 0
  .quad 0x00cf9a000000ffff
  .quad 0x00cf92000000ffff
  .quad 0x00af9a000000ffff
gdt_pointer:
  .word 31
  .long gdt
idt_pointer:
  .word 15
  .long 0x1000
  .org 510
  .word 0xaa55
