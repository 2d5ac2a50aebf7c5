import { mkdir, writeFile } from "node:fs/promises";
import { nodeReference } from "../../../model/cluster-record.ts";
import { ClusterError } from "../../../errors.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import { createKnownHosts } from "../../../ssh/known-hosts.ts";
import { creationFiles } from "../../../system/files/creation-folder.ts";
import type { Clock } from "../../../system/runtime.ts";
import type { FirstBoot } from "../../cloud-init.ts";
import type { FirstHostKeys } from "../../first-host-keys.ts";
import { type ClusterFacts, type NodeFacts, type NodePorts, writeClusterFacts } from "../cluster-facts.ts";
import { createDisk, type ImageFacts } from "../images/disk.ts";
import { createFlash, type Firmware } from "../qemu/firmware.ts";
import { openConsoleSink } from "./console-sink.ts";
import { findFreePorts } from "./free-ports.ts";
import { machineFiles } from "./machine-files.ts";
import { type MachinePlan, machineArguments } from "./machine-arguments.ts";
import { startNetwork, type NetworkSockets } from "./private-network.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { writeSeed } from "./seed.ts";
import type { Accelerator, VmOptions } from "../options.ts";
import { readOwnText } from "../../../system/files/read-text.ts";

const atOnce = 4;
const portTries = 5;

/** How the machines of one cluster are started. */
export interface StartPlan {
  readonly directory: string;
  readonly facts: Omit<ClusterFacts, "schemaVersion">;
  readonly options: Pick<VmOptions, "memoryMegabytes" | "cpus">;
  readonly accelerator: Accelerator;
  readonly isSandboxed: boolean;
  readonly sockets: NetworkSockets;
  readonly clock: Clock;
  /** Returns the file with the memory that a machine continues from; absent: they boot. */
  readonly memoryOf?: (node: NodeFacts) => string;
}

/** Everything that the machines of one cluster have in common. */
export interface LaunchPlan extends StartPlan {
  readonly options: VmOptions;
  readonly firmware: Firmware | undefined;
  readonly image: ImageFacts;
  readonly boot: Omit<FirstBoot, "hostKey">;
  readonly firstHostKeys: FirstHostKeys;
}

type Prepare = (node: NodeFacts, place: number) => Promise<void>;

/** Makes the machines' files, and starts the network and all machines. */
export async function launchMachines(qemu: Qemu, plan: LaunchPlan, signal: AbortSignal): Promise<void> {
  await start(qemu, plan, async (node, place) => prepareFiles(qemu, { plan, node, place }, signal), signal);
}

/** Starts the network and all machines from the files that they have. */
export async function startMachines(qemu: Qemu, plan: StartPlan, signal: AbortSignal): Promise<void> {
  await start(qemu, plan, async () => {}, signal);
}

async function start(qemu: Qemu, plan: StartPlan, prepare: Prepare, signal: AbortSignal): Promise<void> {
  const book = await openBook(plan);
  const places = plan.facts.nodes.map((_, place) => place);
  if (places.length > 1) await startNetwork(qemu, plan, signal);
  const launch = async (place: number): Promise<void> => {
    await prepare(book.node(place), place);
    await launchMachine(qemu, { plan, book, place }, signal);
  };
  await mapConcurrently(places, atOnce, launch, signal);
}

interface Launching {
  readonly plan: StartPlan;
  readonly book: Book;
  readonly place: number;
}

async function launchMachine(qemu: Qemu, launching: Launching, signal: AbortSignal): Promise<void> {
  const { plan, book, place } = launching;
  const node = book.node(place);
  const files = machineFiles(plan.directory, node);
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const machine = {
      ...plan,
      architecture: qemu.architecture,
      files,
      node: book.node(place),
      place,
      memory: plan.memoryOf?.(node),
    };
    const end = await startMachine(qemu, machine);
    if (end.status === 0) return await writeFile(files.started, "", { mode: 0o600 });
    if (tries === portTries || !/could not set up host forwarding rule/i.test(end.stderr))
      throw startFailure(qemu, node, end);
    await book.changePorts(place, toPorts(await findFreePorts(3)));
  }
}

/** Runs to completion, even if something is aborted meanwhile, because it must be known what was started. */
async function startMachine(qemu: Qemu, machine: MachinePlan): Promise<ProgramEnd> {
  const { folder, qemuLog } = machine.files;
  await using _ = await openConsoleSink(folder);
  const end = await qemu.run({ words: machineArguments(machine), cwd: folder }, new AbortController().signal);
  if (end.status === 0) return end;
  return { ...end, stderr: end.stderr.concat(await readOwnText(qemuLog).catch(() => "")) };
}

async function prepareFiles(
  qemu: Qemu,
  { plan, node, place }: { readonly plan: LaunchPlan; readonly node: NodeFacts; readonly place: number },
  signal: AbortSignal,
): Promise<void> {
  const files = machineFiles(plan.directory, node);
  await mkdir(files.folder, { recursive: true, mode: 0o700 });
  await writeSeed(files.seed, {
    instanceId: node.id,
    hostname: hostname(node),
    place,
    boot: { ...plan.boot, hostKey: plan.firstHostKeys.of(node) },
  });
  if (plan.firmware !== undefined) await createFlash(qemu, plan.firmware, files, signal);
  await createDisk(qemu, { path: files.disk, image: plan.image, megabytes: plan.options.diskMegabytes }, signal);
}

/** A hostname must not contain an underscore. */
export const hostname = (node: NodeFacts): string => nodeReference(node).replaceAll("_", "-");

export const toPorts = ([ssh = 0, http = 0, https = 0]: readonly number[]): NodePorts => ({ ssh, http, https });

function startFailure({ systemName }: Qemu, node: NodeFacts, end: Parameters<typeof qemuFailure>[1]): ClusterError {
  const failure = qemuFailure(`${systemName} for ${nodeReference(node)}`, end);
  if (!/unknown driver 'vvfat'/i.test(end.stderr)) return failure;
  return new ClusterError("machine-not-set-up", "This QEMU was built without vvfat, which gives machines their keys.", {
    hint: "Install another build of QEMU, such as the distribution's full package.",
    cause: failure,
  });
}

const nodeHost = "127.0.0.1";

/** The cluster's facts while they can still change. They are saved to the disk before anything relies on them. */
interface Book {
  node(place: number): NodeFacts;
  changePorts(place: number, ports: NodePorts): Promise<void>;
}

async function openBook({ directory, facts }: StartPlan): Promise<Book> {
  const nodes = [...facts.nodes];
  const knownHosts = createKnownHosts(creationFiles(directory).knownHosts);
  // Read before any port changes, because a node may get another one's former port.
  const hostKeys = await Promise.all(nodes.map(async ({ ports }) => knownHosts.expected(nodeHost, ports.ssh)));
  const node = (place: number): NodeFacts => {
    const found = nodes[place];
    if (found === undefined) throw new RangeError(`There is no machine with the number ${place}`);
    return found;
  };
  return {
    node,
    changePorts: async (place, ports) => {
      nodes[place] = { ...node(place), ports };
      const hostKey = hostKeys[place];
      if (hostKey !== undefined) await knownHosts.pin(nodeHost, ports.ssh, hostKey);
      await writeClusterFacts(directory, { ...facts, nodes });
    },
  };
}
