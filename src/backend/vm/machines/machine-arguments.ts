import type { Hardware } from "../hardware.ts";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type WebUi, webPortsOf } from "../../../model/cluster-record.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { type FirstBoot, userData } from "../../shared/first-boot.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { privateAddressWithBits, type NetworkSockets, socketPath } from "./private-network.ts";
import type { Accelerator } from "../options.ts";
import type { Architecture } from "../qemu/architecture.ts";
import { cpuWord } from "../qemu/accelerator.ts";
import { monitorOptions } from "../qemu/monitor.ts";
import { escaped } from "../qemu/qemu.ts";
import { sandboxArguments } from "../qemu/accelerator.ts";
import { consolePipeName } from "./console-sink.ts";
import growRootFile from "./grow-root.sh" with { type: "text" };
import { type MachineFiles, qemuLogName } from "./machine-process.ts";

export interface MachinePlan {
  readonly architecture: Architecture;
  readonly accelerator: Accelerator;
  readonly isSandboxed: boolean;
  readonly options: Hardware & {
    readonly hasGenerationId?: boolean | undefined;
    readonly isOffline?: boolean | undefined;
  };
  readonly files: MachineFiles;
  readonly node: Pick<NodeFacts, "id" | "ports">;
  readonly webUi?: WebUi | undefined;
  /** The node's place in the launch order. */
  readonly place: number;
  readonly sockets: NetworkSockets;
  /** Whether this computer has a way to the Internet of IPv6. Otherwise nodes would get a route that leads nowhere. */
  readonly hasIpv6: boolean;
  /** Absent: it has anonymous memory, and boots. */
  readonly memory?: MemoryFile | undefined;
  /**
   * Whether it is a template, a copy of one, or continues from a snapshot of copies: these have
   * devices of their own.
   */
  readonly isOfTemplate: boolean;
  /** Whether no port of this computer leads to it yet; see `forwards.ts`. */
  readonly opensPortsLater?: boolean | undefined;
}

interface MemoryFile {
  readonly path: string;
  /** Whether the machine writes to the file. Otherwise it reads what it needs, and keeps for itself what it writes. */
  readonly isShared: boolean;
  /** Whether the machine waits for a state to continue from. Otherwise it boots. */
  readonly continues: boolean;
}

/** The socket in the machine's folder that leads to a template's port, and the port's device on the node. */
export const portName = "identity.sock";
const portDevice = "org.cluster-e2e.identity";
export const portPath = `/dev/virtio-ports/${portDevice}`;

/**
 * Returns QEMU's command line. Its working folder must be the machine's, because files that QEMU
 * opens before it leaves that folder have no path here.
 */
export function machineArguments(plan: MachinePlan): readonly string[] {
  const { architecture, accelerator, files, node, place } = plan;
  const options: readonly (readonly [string, string])[] = [
    ["-name", node.id],
    ["-display", "none"],
    ...firmwareOptions(plan),
    ["-accel", accelerator === "tcg" && plan.isOfTemplate ? smallTranslation : accelerator],
    ["-cpu", cpuWord(architecture, accelerator, plan.options.cpuModel)],
    ["-m", String(plan.options.memoryMegabytes)],
    ["-smp", String(plan.options.cpus)],
    ["-device", "virtio-rng-pci"],
    ["-chardev", `file,id=console,path=${consolePipeName}`],
    ["-serial", "chardev:console"],
    ...firmwareConsole(plan),
    ...diskOptions(files),
    ["-netdev", `user,id=outside${wayOut(plan)}${firstLease(plan)}${forwards(plan)}`],
    ["-device", networkCard("outside", macAddresses(place).outside)],
    ...privateNetworkOptions(plan),
    // Otherwise a node whose kernel panicked would look the same as one that was switched off.
    ["-device", architecture.panicDevice],
    ["-action", "panic=pause"],
    ...monitorOptions,
    ["-D", qemuLogName],
    ["-pidfile", files.pid],
    ...memoryOptions(plan),
    ...(plan.isOfTemplate ? templateOptions : []),
    ...generationOptions(plan),
  ];
  return [
    "-nodefaults",
    "-no-user-config",
    ...sandboxArguments(plan),
    ...options.flat(),
    "-daemonize",
  ];
}

/**
 * Keeps translated code to 64 MB: QEMU allows 1 GB, which is more memory than the node writes. With
 * a million translated blocks, a restart takes minutes, because QEMU looks through all blocks of a
 * page at each write to it.
 */
const smallTranslation = "tcg,tb-size=64";

function firmwareOptions({
  architecture,
  files,
  options,
}: MachinePlan): readonly (readonly [string, string])[] {
  const { firmware, manyCpus } = architecture;
  const more =
    manyCpus !== undefined && options.cpus > manyCpus.above ? `,${manyCpus.properties}` : "";
  const machine = `${architecture.machine}${more},memory-backend=memory`;
  if (firmware === "BIOS") return [["-machine", machine]];
  const flash = (name: string, filename: string, isReadOnly: boolean) =>
    ["-blockdev", JSON.stringify(layer(name, filename, { "read-only": isReadOnly }))] as const;
  return [
    ["-machine", `${machine},pflash0=program,pflash1=variables`],
    flash("program", files.flash.program, true),
    flash("variables", files.flash.variables, false),
  ];
}

/** BIOS says at a port of its own what it boots, or that it can't. UEFI says it on the serial console. */
const firmwareConsole = ({ architecture }: MachinePlan): readonly (readonly [string, string])[] =>
  architecture.firmware === "UEFI"
    ? []
    : [
        ["-chardev", `file,id=firmware,path=${consolePipeName}`],
        ["-device", "isa-debugcon,iobase=0x402,chardev=firmware"],
      ];

function memoryOptions({ options, memory }: MachinePlan): readonly (readonly [string, string])[] {
  const size = `id=memory,size=${options.memoryMegabytes}M`;
  if (memory === undefined) return [["-object", `memory-backend-ram,${size}`]];
  const file = `mem-path=${escaped(memory.path)},share=${memory.isShared ? "on" : "off"}`;
  const incoming = memory.continues ? [["-incoming", "defer"] as const] : [];
  return [["-object", `memory-backend-file,${size},${file}`], ...incoming];
}

const templateOptions: readonly (readonly [string, string])[] = [
  ["-device", "virtio-serial-pci"],
  ["-chardev", `socket,id=identity,path=${portName},server=on,wait=off`],
  ["-device", `virtserialport,chardev=identity,name=${portDevice}`],
];

/**
 * Each QEMU has another id, by which the kernel notices that the machine continues from saved
 * memory, and makes other random numbers.
 */
function generationOptions({
  architecture,
  options,
  isOfTemplate,
}: MachinePlan): readonly (readonly [string, string])[] {
  const { generationDevice } = architecture;
  const isMissing =
    generationDevice === undefined || !(isOfTemplate || options.hasGenerationId === true);
  return isMissing ? [] : [["-device", `${generationDevice},guid=auto`]];
}

const layer = (name: string, filename: string, more: Readonly<Record<string, unknown>>) => ({
  driver: "qcow2",
  "node-name": name,
  file: { driver: "file", filename },
  ...more,
});

/**
 * If this computer's disk is full, the node gets an error; otherwise it would stop without a
 * message. A node's flushes, which package managers send all the time, aren't passed on: machines
 * don't survive a crash of this computer anyway.
 */
function diskOptions({ disk, seed }: MachineFiles): readonly (readonly [string, string])[] {
  const folder = {
    driver: "vvfat",
    "node-name": "seed",
    dir: seed,
    label: "cidata",
    "read-only": true,
  };
  return [
    [
      "-blockdev",
      JSON.stringify(layer("disk", disk, { discard: "unmap", cache: { "no-flush": true } })),
    ],
    ["-device", "virtio-blk-pci,drive=disk,bootindex=0,werror=report"],
    ["-blockdev", JSON.stringify(folder)],
    ["-device", "virtio-blk-pci,drive=seed"],
  ];
}

/** The card has no firmware of its own, because that would try to boot from the network. */
const networkCard = (network: string, mac: string): string =>
  `virtio-net-pci,netdev=${network},mac=${mac},romfile=`;

/**
 * Restricted, QEMU's network leads only to the node, from the ports of this computer that are
 * forwarded. Nothing on the node can change that.
 */
const wayOut = ({ options, hasIpv6 }: MachinePlan): string =>
  `${hasIpv6 && options.isOffline !== true ? "" : ",ipv6=off"}${options.isOffline === true ? ",restrict=on" : ""}`;

/**
 * The second address that QEMU's network lends. The state of that network is part of a copy's, and
 * in it the template has the first.
 */
const copyAddress = "10.0.2.16";

/** A copy that is started again boots, but its ports still lead to the address that it had as a copy. */
const firstLease = ({ memory, isOfTemplate }: MachinePlan): string =>
  isOfTemplate && memory === undefined ? `,dhcpstart=${copyAddress}` : "";

/** Where QEMU sends what arrives at ports of this computer; nothing: to the first address that its network lends. */
export const forwardAddress = ({ isOfTemplate }: Pick<MachinePlan, "isOfTemplate">): string =>
  isOfTemplate ? copyAddress : "";

type Forwarded = Pick<MachinePlan, "node" | "webUi" | "isOfTemplate">;

/** Returns QEMU's rules for the ports of this computer that lead to a node. A template has none. */
export const forwardRules = ({ node: { ports }, webUi, ...plan }: Forwarded): readonly string[] =>
  [
    [ports.ssh, 22],
    [ports.http, webPortsOf(webUi).http],
    [ports.https, webPortsOf(webUi).https],
  ]
    .filter(([here]) => here !== 0)
    .map(([here, there]) => `tcp:127.0.0.1:${here}-${forwardAddress(plan)}:${there}`);

const forwards = (plan: MachinePlan): string =>
  plan.opensPortsLater === true
    ? ""
    : forwardRules(plan)
        .map((rule) => `,hostfwd=${rule}`)
        .join("");

/**
 * A single node has the card as well, so that its private address is a real one. The second port of
 * its hub takes all packets: otherwise they wait in the card, and newer kernels (seen with 6.12)
 * complain every five seconds.
 */
function privateNetworkOptions({
  place,
  sockets,
}: MachinePlan): readonly (readonly [string, string])[] {
  const path = (): string => escaped(socketPath(sockets, place));
  const connections =
    sockets.count === 1
      ? ["hubport,id=inside,hubid=0", "hubport,id=nowhere,hubid=0"]
      : [`stream,id=inside,server=off,addr.type=unix,addr.path=${path()}`];
  return [
    ...connections.map((each) => ["-netdev", each] as const),
    ["-device", networkCard("inside", macAddresses(place).inside)],
  ];
}

/** The node's own part of the cloud-init data. */
export interface Seed {
  /** cloud-init treats machines with the same id as the same machine. */
  readonly instanceId: string;
  readonly hostname: string;
  /** The node's place in the launch order. */
  readonly place: number;
  readonly boot: FirstBoot;
}

/** Returns a node's hardware addresses. They are the same in every cluster, since no two clusters share a network. */
export const macAddresses = (
  place: number,
): { readonly outside: string; readonly inside: string } => {
  const number = place + 2;
  const end = [number >> 8, number & 255]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join(":");
  return { outside: `52:54:00:93:${end}`, inside: `52:54:00:94:${end}` };
};

const growRoot = shellText(growRootFile, {});

/** Writes the part of a seed that a copy of its machine keeps. */
export async function writeInstanceId(folder: string, instanceId: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "meta-data"), JSON.stringify({ "instance-id": instanceId }), {
    mode: 0o600,
  });
}

/** Writes the files for cloud-init's NoCloud source. All are JSON, because every JSON text is also YAML. */
export async function writeSeed(folder: string, seed: Seed): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const metaData = { "instance-id": seed.instanceId, "local-hostname": seed.hostname };
  const files = {
    "user-data": userData({ ...seed.boot, scripts: [growRoot, ...(seed.boot.scripts ?? [])] }),
    "meta-data": `${JSON.stringify(metaData, undefined, 1)}\n`,
    "network-config": `${JSON.stringify(networkConfiguration(seed.place), undefined, 1)}\n`,
  };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(folder, name), text, { mode: 0o600 });
}

/**
 * Uses version 1, which every version of cloud-init reads. The private address never changes and
 * has no route to anywhere else.
 */
export function networkConfiguration(place: number): unknown {
  const mac = macAddresses(place);
  const outside = {
    type: "physical",
    name: "eth0",
    mac_address: mac.outside,
    subnets: [{ type: "dhcp" }],
  };
  const subnet = { type: "static", address: privateAddressWithBits(place) };
  const inside = { type: "physical", name: "eth1", mac_address: mac.inside, subnets: [subnet] };
  return { version: 1, config: [outside, inside] };
}
