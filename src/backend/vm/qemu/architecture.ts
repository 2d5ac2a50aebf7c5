import { arch } from "node:os";
import { ClusterError } from "../../../errors.ts";
import { x86ProbeDisk, x86ProbeRom, x86ProbeStatus, x86ProbeArguments } from "./x86-probe.ts";

/**
 * All differences between the processors that machines can have. Machines have this computer's
 * architecture, since any other would be slow everywhere.
 */
export interface Architecture {
  /** The name that uname, QEMU and Red Hat's relatives use. */
  readonly name: "x86_64" | "aarch64";
  /** The name that Debian and Ubuntu use. */
  readonly debianName: "amd64" | "arm64";
  /** Debian's packages for everything that is needed. */
  readonly packages: string;
  /** QEMU's name for the kind of machine. */
  readonly machine: "q35" | "virt";
  /** The properties of a machine that has more CPUs than the kind has by default; absent if that is no limit. */
  readonly manyCpus?: { readonly above: number; readonly properties: string };
  readonly translatedCpu: string;
  /** The firmware that an image must boot with. */
  readonly firmware: "BIOS" | "UEFI";
  readonly panicDevice: "pvpanic" | "pvpanic-pci";
  /**
   * The device through which a node's kernel learns that the machine is a copy; absent if this kind
   * of machine has none.
   */
  readonly generationDevice?: "vmgenid";
  readonly probe: Probe;
}

/** A program that ends QEMU. If QEMU ends, the accelerator works. */
interface Probe {
  /** The program in place of the firmware. */
  readonly rom: () => Uint8Array;
  /** The program on a disk that the built-in firmware boots from; absent if machines have none built in. */
  readonly disk?: () => Uint8Array;
  readonly words: readonly string[];
  readonly status: number;
}

const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    name: "x86_64",
    debianName: "amd64",
    packages: "qemu-system-x86 qemu-utils",
    machine: "q35",
    translatedCpu: "max",
    firmware: "BIOS",
    panicDevice: "pvpanic",
    generationDevice: "vmgenid",
    probe: {
      rom: x86ProbeRom,
      disk: x86ProbeDisk,
      words: x86ProbeArguments,
      status: x86ProbeStatus,
    },
  },
  arm64: {
    name: "aarch64",
    debianName: "arm64",
    packages: "qemu-system-arm qemu-efi-aarch64 qemu-utils",
    machine: "virt",
    // The default interrupt controller of QEMU 7.2 serves eight CPUs; newer versions choose the
    // third one for more by themselves.
    manyCpus: { above: 8, properties: "gic-version=3" },
    // "max" enables every feature, which is more than the kernels of older distributions can boot with.
    translatedCpu: "neoverse-n1",
    firmware: "UEFI",
    panicDevice: "pvpanic-pci",
    probe: {
      rom: armProbeRom,
      words: [],
      status: 0,
    },
  },
};

/** The code: mov w0, 0x84000008; hvc 0; b . (which powers the machine off) */
function armProbeRom(): Uint8Array {
  const rom = new Uint8Array(65_536);
  rom.set([
    0x00, 0x01, 0x80, 0x52, 0x00, 0x80, 0xb0, 0x72, 0x02, 0x00, 0x00, 0xd4, 0x00, 0x00, 0x00, 0x14,
  ]);
  return rom;
}

/** Takes Node's name for the architecture. Throws `machine-not-set-up` for any other name. */
export function architectureOf(name: string): Architecture {
  const found = architectures[name];
  if (found !== undefined) return found;
  const known = Object.keys(architectures).join(" and ");
  throw new ClusterError(
    "machine-not-set-up",
    `Virtual machines are supported on ${known}, but this computer is ${name}.`,
    {
      hint: "Use cluster-container or cluster-cloud here.",
      facts: { architecture: name },
    },
  );
}

export const hostArchitecture = (): Architecture => architectureOf(arch());
