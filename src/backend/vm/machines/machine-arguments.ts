import { quote } from "../../../ssh/quote.ts";
import type { Architecture } from "../qemu/architecture.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { consolePipeName } from "./console-sink.ts";
import { type MachineFiles, qemuLogName } from "./machine-files.ts";
import { monitorOptions } from "../qemu/monitor.ts";
import { socketPath, type NetworkSockets } from "./private-network.ts";
import { escaped } from "../qemu/qemu.ts";
import { sandboxArguments } from "../qemu/sandbox.ts";
import { macAddresses } from "./seed.ts";
import type { Accelerator, VmOptions } from "../options.ts";

/** Everything that a machine consists of. */
export interface MachinePlan {
  readonly architecture: Architecture;
  readonly accelerator: Accelerator;
  readonly isSandboxed: boolean;
  readonly options: Pick<VmOptions, "memoryMegabytes" | "cpus">;
  readonly files: MachineFiles;
  readonly node: NodeFacts;
  /** The node's place in the launch order. */
  readonly place: number;
  readonly sockets: NetworkSockets;
  /** A file with the memory to continue from; absent: the machine boots. */
  readonly memory?: string | undefined;
}

/**
 * Returns QEMU's command line. Its working folder must be the machine's, because files that QEMU opens before it leaves that folder have no path
 * here.
 */
export function machineArguments(plan: MachinePlan): readonly string[] {
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
    ["-chardev", `file,id=console,path=${consolePipeName}`],
    ["-serial", "chardev:console"],
    ...diskOptions(files),
    ["-netdev", `user,id=outside,${forwards(node)}`],
    ["-device", networkCard("outside", macAddresses(place).outside)],
    ...privateNetworkOptions(plan),
    // Otherwise a node whose kernel panicked would look the same as one that was switched off.
    ["-device", architecture.panicDevice],
    ["-action", "panic=pause"],
    ...monitorOptions,
    ["-D", qemuLogName],
    ["-pidfile", files.pid],
    ...(plan.memory === undefined ? [] : [["-incoming", `exec:${quote(["cat", plan.memory])}`] as const]),
  ];
  return ["-nodefaults", "-no-user-config", ...sandboxArguments(plan), ...options.flat(), "-daemonize"];
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

/**
 * If this computer's disk is full, the node gets an error; otherwise it would stop without a message. A node's flushes, which package managers send
 * all the time, aren't passed on: machines don't survive a crash of this computer anyway.
 */
function diskOptions({ disk, seed }: MachineFiles): readonly (readonly [string, string])[] {
  const folder = { driver: "vvfat", "node-name": "seed", dir: seed, label: "cidata", "read-only": true };
  return [
    ["-blockdev", JSON.stringify(layer("disk", disk, { discard: "unmap", cache: { "no-flush": true } }))],
    ["-device", "virtio-blk-pci,drive=disk,bootindex=0,werror=report"],
    ["-blockdev", JSON.stringify(folder)],
    ["-device", "virtio-blk-pci,drive=seed"],
  ];
}

/** The card has no firmware of its own, because that would try to boot from the network. */
const networkCard = (network: string, mac: string): string => `virtio-net-pci,netdev=${network},mac=${mac},romfile=`;

const forwards = ({ ports }: NodeFacts): string =>
  [
    [ports.ssh, 22],
    [ports.http, 80],
    [ports.https, 443],
  ]
    .map(([here, there]) => `hostfwd=tcp:127.0.0.1:${here}-:${there}`)
    .join(",");

/** A single node has the card as well, so that its private address is a real one. */
function privateNetworkOptions({ place, sockets }: MachinePlan): readonly (readonly [string, string])[] {
  const connection =
    sockets.count === 1
      ? "hubport,id=inside,hubid=0"
      : `stream,id=inside,server=off,addr.type=unix,addr.path=${escaped(socketPath(sockets, place))}`;
  return [
    ["-netdev", connection],
    ["-device", networkCard("inside", macAddresses(place).inside)],
  ];
}
