import { expect, test } from "bun:test";
import { bootProblemIn, startLine } from "../../../../../src/backend/vm/machines/boot-problem.ts";
import { unmarked } from "../../../../../src/outside-text.ts";

const bios = { firmware: "BIOS", name: "x86_64" } as const;
const uefi = { firmware: "UEFI", name: "aarch64" } as const;
const minutes = 60_000;

type Boots = Parameters<typeof bootProblemIn>[1]["boots"];

const problemIn = (
  console: string,
  { boots = bios, quietMs = 0 }: { readonly boots?: Boots; readonly quietMs?: number } = {},
) => {
  const found = bootProblemIn(console, { hostname: "master-0", quietMs, boots });
  return found && unmarked(found.what);
};

const seabios = "SeaBIOS (version 1.16.2-debian-1.16.2-1)\n";
const linux =
  "[    0.000000] Linux version 6.1.0-56-cloud-amd64 (debian-kernel@lists.debian.org)\r\n";
const escapes = "\u001b[2J\u001b[01;01H\u001b[=3h";

test.each([
  [
    "a disk from which BIOS can't boot",
    `${seabios}Booting from Hard Disk...\nNo bootable device.\n`,
    "its BIOS finds nothing to start on the disk",
  ],
  [
    "one at which BIOS tries again",
    `${seabios}No bootable device.  Retrying in 60 seconds.\n`,
    "its BIOS finds nothing to start on the disk",
  ],
  [
    "a panic",
    `${linux}[    4.120000] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r\n[    4.130000] CPU: 0\r\n`,
    "its kernel panicked (VFS: Unable to mount root fs on unknown-block(0,0))",
  ],
  [
    "a computer that is too busy",
    `${linux}[    0.320000] Kernel panic - not syncing: IO-APIC + timer doesn't work!  Boot with apic=debug\r\n`,
    "its kernel got no clock in time",
  ],
  [
    "a panic with the thread's number",
    `${linux}[    4.120000][    T1] Kernel panic - not syncing: No working init found.\r\n`,
    "its kernel panicked (No working init found)",
  ],
  [
    "a systemd whose generators take too long",
    `${linux}[  242.624762] systemd[1]: Failed to fork off sandboxing environment for executing generators: Protocol error\r\n[\u001b[0;1;31m!!!!!!\u001b[0m] Failed to start up manager.\r\n[  245.774416] systemd[1]: Freezing execution.\r\n`,
    "its systemd has given up",
  ],
  [
    "an initramfs without a root",
    `${linux}ALERT!  LABEL=rootfs does not exist.  Dropping to a shell!\r\n(initramfs) `,
    "it does not find its root file system (LABEL=rootfs does not exist. Dropping to a shell)",
  ],
  [
    "a root that its kernel refuses",
    `${linux}mount: Invalid argument\r\nFailed to mount /dev/vda1 as root file system.\r\n(initramfs) `,
    "it cannot mount its root file system (/dev/vda1)",
  ],
  [
    "a shell of an initramfs",
    `${linux}BusyBox v1.35.0\r\n\r\n(initramfs) `,
    "its system stopped before it had found its file systems",
  ],
  [
    "dracut's emergency",
    `${linux}Entering emergency mode. Exit the shell to continue.\r\n`,
    "its system is in emergency mode",
  ],
  [
    "systemd's emergency",
    `${linux}You are in emergency mode. After logging in, type "journalctl -xb"\r\n`,
    "its system is in emergency mode",
  ],
  [
    "the rescue mode",
    `${linux}You are in rescue mode. After logging in\r\n`,
    "its system is in rescue mode",
  ],
  [
    "maintenance",
    `${linux}Give root password for maintenance\r\n(or press Control-D to continue): `,
    "its system stopped for maintenance",
  ],
  [
    "maintenance that waits",
    `${linux}Press Enter for maintenance`,
    "its system stopped for maintenance",
  ],
  [
    "GRUB without a system",
    `${seabios}error: no such partition.\r\nEntering rescue mode...\r\ngrub rescue> `,
    "its bootloader GRUB does not find a system",
  ],
  [
    "GRUB's own prompt",
    `${seabios}GNU GRUB  version 2.06\r\n\r\ngrub> `,
    "its bootloader GRUB does not find a system",
  ],
  [
    "another data source",
    `${linux}[   20.1] cloud-init[400]: Cloud-init v. 22.4.2 finished at Fri, 27 Nov 2026 02:43:00 +0000. Datasource DataSourceNone.  Up 20.0 seconds\r\n`,
    "its cloud-init used the data source None instead of NoCloud",
  ],
] as const)("the console shows %s", (_, console, problem) => {
  expect(problemIn(console)).toBe(problem as string);
});

test.each([
  [
    "the firmware's own shell",
    `${escapes}BdsDxe: failed to load Boot0001\r\n${escapes}UEFI Interactive Shell v2.2\r\nEDK II\r\n`,
  ],
  ["nothing to boot", `${escapes}BdsDxe: No bootable option or device was found.\r\n`],
] as const)("under UEFI, the console shows %s", (_, console) => {
  expect(problemIn(console, { boots: uefi })).toBe("its UEFI finds nothing to start on the disk");
});

test("what a console held before its QEMU started counts no longer, whatever continues", () => {
  const panic = `${linux}[    4.120000] Kernel panic - not syncing: No working init found.\r\n`;
  expect(problemIn(panic)).toContain("panicked");
  expect(problemIn(`${panic}\n${startLine}\n`)).toBeUndefined();
  expect(problemIn(`${panic}\n${startLine}\nYou are in emergency mode. After`)).toBe(
    "its system is in emergency mode",
  );
});

test("a login prompt of a machine that cloud-init did not touch counts after minutes of silence", () => {
  const prompt = `${linux}\r\nDebian GNU/Linux 12 localhost ttyS0\r\n\r\nlocalhost login: `;
  const problem = "it asks for a login as localhost, and its cloud-init has done nothing";
  expect(problemIn(prompt, { quietMs: 4 * minutes })).toBeUndefined();
  expect(problemIn(prompt, { quietMs: 6 * minutes })).toBe(problem);
  expect(problemIn(`${prompt}[   60.1] random: crng init done\r\n`, { quietMs: 6 * minutes })).toBe(
    problem,
  );
});

test.each([
  [
    "an ordinary boot",
    `${seabios}Booting from Hard Disk...\n${linux}[    3.0] systemd[1]: Starting emergency.target\r\n`,
  ],
  [
    "the prompt of a node",
    `${linux}\r\nDebian GNU/Linux 12 master-0 ttyS0\r\n\r\nmaster-0 login: `,
  ],
  ["the prompt of a node with a domain", `${linux}\r\nmaster-0.localdomain login: `],
  [
    "a prompt under the image's name, behind cloud-init",
    `${linux}[   20.1] cloud-init[4]: Cloud-init v. 22.4.2 running 'init' at Fri\r\nimage login: `,
  ],
  [
    "the source of a node",
    `${linux}Cloud-init v. 22.4.2 finished at Fri. Datasource DataSourceNoCloud [seed=/dev/vdb].  Up 20 seconds\r\n`,
  ],
  [
    "a restart after a panic",
    `${linux}[    4.1] Kernel panic - not syncing: x\r\n${seabios}${linux}[    1.0] Run /init\r\n`,
  ],
  ["a restart after an emergency", `${linux}You are in emergency mode.\r\n${linux}`],
  ["nothing yet", ""],
] as const)("no problem is %s", (_, console) => {
  expect(problemIn(console, { quietMs: 60 * minutes })).toBeUndefined();
});
