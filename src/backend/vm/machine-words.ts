import type { Accelerator } from "./accelerator.ts";
import type { Architecture } from "./architecture.ts";
import type { NodeFacts } from "./cluster-facts.ts";
import type { MachineFiles } from "./machine-files.ts";
import { wirePath, type Wires } from "./private-network.ts";
import { escaped } from "./qemu.ts";
import { macAddresses } from "./seed.ts";
import type { VmOptions } from "./vm-options.ts";

/** All that a machine is made of. */
export interface MachinePlan {
  readonly architecture: Architecture;
  readonly accelerator: Accelerator;
  readonly options: VmOptions;
  readonly files: MachineFiles;
  readonly node: NodeFacts;
  /** The node's place in the launch order. */
  readonly place: number;
  readonly wires: Wires;
}

/** QEMU's command line. */
export function machineWords(plan: MachinePlan): readonly string[] {
  const { architecture, accelerator, files, node, place } = plan;
  const options: readonly (readonly [string, string])[] = [
    ["-name", node.id],
    ["-display", "none"],
    ...firmwareOptions(plan),
    ["-accel", accelerator],
    ["-cpu", accelerator === "tcg" ? architecture.translatedCpu : "host"],
    ["-m", String(plan.options.memoryMegabytes)],
    ["-smp", String(plan.options.cpus)],
    ["-device", "virtio-rng-pci"],
    ["-chardev", `file,id=console,path=${escaped(files.console)}`],
    ["-serial", "chardev:console"],
    ...diskOptions(files),
    ["-netdev", `user,id=outside,${forwards(node)}`],
    ["-device", networkCard("outside", macAddresses(place).outside)],
    ...privateNetworkOptions(plan),
    ["-pidfile", files.pid],
  ];
  return ["-nodefaults", "-no-user-config", ...options.flat(), "-daemonize"];
}

function firmwareOptions({ architecture, files }: MachinePlan): readonly (readonly [string, string])[] {
  const { machine, firmware } = architecture;
  if (firmware === "BIOS") return [["-machine", machine]];
  const flash = (name: string, filename: string, isReadOnly: boolean) =>
    ["-blockdev", JSON.stringify(layer(name, filename, { "read-only": isReadOnly }))] as const;
  return [
    ["-machine", `${machine},pflash0=program,pflash1=variables`],
    flash("program", files.flash.program, true),
    flash("variables", files.flash.variables, false),
  ];
}

const layer = (name: string, filename: string, more: Readonly<Record<string, unknown>>) => ({
  driver: "qcow2",
  "node-name": name,
  file: { driver: "file", filename },
  ...more,
});

/** A full disk of this computer is told to the node, which would stand still without a word otherwise. */
function diskOptions({ disk, seed }: MachineFiles): readonly (readonly [string, string])[] {
  const folder = { driver: "vvfat", "node-name": "seed", dir: seed, label: "cidata", "read-only": true };
  return [
    ["-blockdev", JSON.stringify(layer("disk", disk, { discard: "unmap" }))],
    ["-device", "virtio-blk-pci,drive=disk,bootindex=0,werror=report"],
    ["-blockdev", JSON.stringify(folder)],
    ["-device", "virtio-blk-pci,drive=seed"],
  ];
}

/** Without firmware of its own, which would try to boot from the network. */
const networkCard = (network: string, mac: string): string => `virtio-net-pci,netdev=${network},mac=${mac},romfile=`;

const forwards = ({ ports }: NodeFacts): string =>
  [
    [ports.ssh, 22],
    [ports.http, 80],
    [ports.https, 443],
  ]
    .map(([here, there]) => `hostfwd=tcp:127.0.0.1:${here}-:${there}`)
    .join(",");

/** A node that is alone has the card as well, so that its private address is a real one. */
function privateNetworkOptions({ place, wires }: MachinePlan): readonly (readonly [string, string])[] {
  const wire =
    wires.count === 1
      ? "hubport,id=inside,hubid=0"
      : `stream,id=inside,server=off,addr.type=unix,addr.path=${escaped(wirePath(wires, place))}`;
  return [
    ["-netdev", wire],
    ["-device", networkCard("inside", macAddresses(place).inside)],
  ];
}
