import { mkdir, readFile, writeFile } from "node:fs/promises";
import { nodeReference } from "../../../model/cluster-record.ts";
import { ClusterError } from "../../../errors.ts";
import { runAtOnce } from "../../../system/run-at-once.ts";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import type { Clock } from "../../../system/clock.ts";
import type { FirstBoot } from "../../cloud-init.ts";
import type { FirstHostKeys } from "../../first-host-keys.ts";
import { type ClusterFacts, type NodeFacts, type NodePorts, writeClusterFacts } from "../cluster-facts.ts";
import { createDisk, type ImageFacts } from "../images/disk.ts";
import { createFlash, type Firmware } from "../qemu/firmware.ts";
import { findFreePorts } from "./free-ports.ts";
import { machineFiles, type MachineFiles } from "./machine-files.ts";
import { type MachinePlan, machineWords } from "./machine-words.ts";
import { startNetwork, type Wires } from "./private-network.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { writeSeed } from "./seed.ts";
import type { Accelerator, VmOptions } from "../vm-options.ts";

const atOnce = 4;
const portTries = 5;

/** Everything that the machines of one cluster have in common. */
export interface LaunchPlan {
  readonly directory: string;
  readonly facts: Omit<ClusterFacts, "schemaVersion">;
  readonly options: VmOptions;
  readonly accelerator: Accelerator;
  readonly isSandboxed: boolean;
  readonly firmware: Firmware | undefined;
  readonly image: ImageFacts;
  readonly boot: Omit<FirstBoot, "hostKey">;
  readonly firstHostKeys: FirstHostKeys;
  readonly wires: Wires;
  readonly clock: Clock;
}

/** Starts the network and then all machines. */
export async function launchMachines(qemu: Qemu, plan: LaunchPlan, signal: AbortSignal): Promise<void> {
  const book = openBook(plan);
  const places = plan.facts.nodes.map((_, place) => place);
  if (places.length > 1) await startNetwork(qemu, plan, signal);
  await runAtOnce(places, atOnce, async (place) => launchMachine(qemu, { plan, book, place }, signal), signal);
}

interface Launching {
  readonly plan: LaunchPlan;
  readonly book: Book;
  readonly place: number;
}

async function launchMachine(qemu: Qemu, launching: Launching, signal: AbortSignal): Promise<void> {
  const { plan, book, place } = launching;
  const node = book.node(place);
  const files = machineFiles(plan.directory, node);
  await prepareFiles(qemu, { launching, files, node }, signal);
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const machine = {
      ...plan,
      architecture: qemu.architecture,
      files,
      node: book.node(place),
      place,
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
  const end = await qemu.run({ words: machineWords(machine), cwd: folder }, new AbortController().signal);
  if (end.status === 0) return end;
  return { ...end, stderr: `${end.stderr}${await readFile(qemuLog, "utf8").catch(() => "")}` };
}

async function prepareFiles(
  qemu: Qemu,
  { launching, files, node }: { readonly launching: Launching; readonly files: MachineFiles; readonly node: NodeFacts },
  signal: AbortSignal,
): Promise<void> {
  const { plan, place } = launching;
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
  return new ClusterError(
    "machine-not-set-up",
    "This QEMU was built without vvfat, by which machines get their keys.",
    {
      hint: "Install another build of QEMU, such as the distribution's full one.",
      cause: failure,
    },
  );
}

/** The cluster's facts while they can still change. They are saved to the disk before anything relies on them. */
interface Book {
  node(place: number): NodeFacts;
  changePorts(place: number, ports: NodePorts): Promise<void>;
}

function openBook({ directory, facts }: LaunchPlan): Book {
  const nodes = [...facts.nodes];
  const node = (place: number): NodeFacts => {
    const found = nodes[place];
    if (found === undefined) throw new RangeError(`There is no machine at place ${place}`);
    return found;
  };
  return {
    node,
    changePorts: async (place, ports) => {
      nodes[place] = { ...node(place), ports };
      await writeClusterFacts(directory, { ...facts, nodes });
    },
  };
}
