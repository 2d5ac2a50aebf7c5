import { mkdir, writeFile } from "node:fs/promises";
import { type Server, createServer } from "node:net";
import { ClusterError } from "../../../errors.ts";
import { type ClusterRecord, nodeHostname, nodeReference } from "../../../model/cluster-record.ts";
import { createKnownHosts } from "../../../ssh/openssh-files.ts";
import { creationFiles } from "../../../store/creation-folder.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import type { Clock } from "../../../system/runtime.ts";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import type { FirstBoot, FirstHostKeys } from "../../shared/first-boot.ts";
import { machineFailed } from "../../shared/machine-errors.ts";
import {
  type ClusterFacts,
  type NodeFacts,
  type NodePorts,
  type StoredCluster,
  readCluster,
  writeClusterFacts,
} from "../cluster-facts.ts";
import { consoleOutput, openConsoleSink } from "./console-sink.ts";
import { type ImageFacts, createDisk } from "../images/image-store.ts";
import type { VmOptions } from "../options.ts";
import type { Architecture } from "../qemu/architecture.ts";
import { type Firmware, createFlash } from "../qemu/firmware.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { observeCluster } from "../records.ts";
import { assertBoots } from "./boot-problem.ts";
import { openForwards } from "./forwards.ts";
import { nameServerScripts, usesIpv6 } from "./host-ipv6.ts";
import {
  type MachinePlan,
  forwardRules,
  machineArguments,
  writeSeed,
} from "./machine-arguments.ts";
import { type MachineFiles, machineFiles, startQemu } from "./machine-process.ts";
import { type NetworkPlan, startNetwork } from "./private-network.ts";

const atOnce = 4;
const portTries = 5;

/** How the machines of one cluster are started. */
export interface StartPlan
  extends
    NetworkPlan,
    Pick<
      MachinePlan,
      "accelerator" | "isSandboxed" | "options" | "isOfTemplate" | "opensPortsLater"
    > {
  readonly facts: Omit<ClusterFacts, "schemaVersion">;
  /**
   * Returns the file with the memory that a machine continues from, once `follow` has given it its
   * state; absent: they boot.
   */
  readonly memoryOf?: (node: NodeFacts) => string;
  /** The only machines to start, by their places; absent: all, and the network. */
  readonly again?: { readonly places: readonly number[]; readonly hasNetwork: boolean };
}

/** Everything that the machines of one cluster have in common. */
export interface LaunchPlan extends StartPlan {
  readonly options: VmOptions & MachinePlan["options"];
  readonly firmware: Firmware | undefined;
  readonly image: ImageFacts;
  readonly boot: Omit<FirstBoot, "hostKey">;
  readonly firstHostKeys: FirstHostKeys;
}

/** What is done for a machine before it is started, and then. */
interface Steps {
  readonly prepare?: (node: NodeFacts, place: number) => Promise<void>;
  readonly follow?: (node: NodeFacts, place: number) => Promise<void>;
}

/** Makes the machines' files, and starts the network and all machines. */
export async function launchMachines(
  qemu: Qemu,
  plan: LaunchPlan,
  signal: AbortSignal,
): Promise<void> {
  const prepare = async (node: NodeFacts, place: number): Promise<void> =>
    prepareFiles(qemu, { plan, node, place }, signal);
  await startMachines(qemu, plan, { prepare }, signal);
}

export async function startMachines(
  qemu: Qemu,
  plan: StartPlan,
  steps: Steps,
  signal: AbortSignal,
): Promise<void> {
  const [book, hasIpv6] = [await openBook(plan), await usesIpv6()];
  const { nodes } = plan.facts;
  const places = plan.again?.places ?? nodes.map((_, place) => place);
  if (nodes.length > 1 && plan.again?.hasNetwork !== true) await startNetwork(qemu, plan, signal);
  const launch = async (place: number): Promise<void> => {
    await steps.prepare?.(book.node(place), place);
    await launchMachine(qemu, { plan, book, place, hasIpv6 }, signal);
    await steps.follow?.(book.node(place), place);
  };
  await mapConcurrently(places, atOnce, launch, signal);
}

interface Launching {
  readonly plan: StartPlan;
  readonly book: Book;
  readonly place: number;
  readonly hasIpv6: boolean;
}

async function launchMachine(qemu: Qemu, launching: Launching, signal: AbortSignal): Promise<void> {
  const { plan, book, place, hasIpv6 } = launching;
  const node = book.node(place);
  const files = machineFiles(plan.directory, node);
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const memory = plan.memoryOf?.(node);
    const machine = {
      ...plan,
      architecture: qemu.architecture,
      files,
      webUi: plan.facts.webUi,
      node: book.node(place),
      place,
      hasIpv6,
      memory: memory === undefined ? undefined : { path: memory, isShared: false, continues: true },
    };
    const end = await startQemu(files, async () => startMachine(qemu, machine), plan.clock, signal);
    if (end.status === 0) return await writeFile(files.started, "");
    if (tries === portTries || !/could not set up host forwarding rule/i.test(end.stderr))
      throw startFailure(qemu, nodeReference(node), end);
    await book.changePorts(place, toPorts(await findFreePorts(3)));
  }
}

/** Runs to completion, even if something is aborted meanwhile, because it must be known what was started. */
export async function startMachine(qemu: Qemu, machine: MachinePlan): Promise<ProgramEnd> {
  const { folder, qemuLog } = machine.files;
  await using _ = await openConsoleSink(folder);
  const end = await qemu.run(
    { words: machineArguments(machine), cwd: folder },
    new AbortController().signal,
  );
  if (end.status === 0) return end;
  return { ...end, stderr: end.stderr.concat(await readOwnText(qemuLog).catch(() => "")) };
}

/**
 * Lets this computer's ports lead to machines that were started without them. Records other ports
 * for those that are taken.
 */
export async function openPorts(
  plan: Pick<StartPlan, "directory" | "facts" | "isOfTemplate">,
  signal: AbortSignal,
): Promise<void> {
  const book = await openBook(plan);
  const { directory, facts } = plan;
  for (const place of facts.nodes.keys()) {
    const { folder } = machineFiles(directory, book.node(place));
    const rules = () => forwardRules({ ...plan, node: book.node(place), webUi: facts.webUi });
    for (let tries = 1; !(await openForwards(folder, rules(), signal)); tries += 1) {
      if (tries === portTries)
        throw new ClusterError("engine-failed", "QEMU finds no free port of 127.0.0.1.");
      await book.changePorts(place, toPorts(await findFreePorts(3)));
    }
  }
}

async function prepareFiles(
  qemu: Qemu,
  {
    plan,
    node,
    place,
  }: { readonly plan: LaunchPlan; readonly node: NodeFacts; readonly place: number },
  signal: AbortSignal,
): Promise<void> {
  const { directory, boot, firstHostKeys } = plan;
  const files = await makeMachineFolder(
    directory,
    { ...boot, hostKey: firstHostKeys.of(node), scripts: await nameServerScripts() },
    { node, place },
  );
  if (plan.firmware !== undefined) await createFlash(qemu, plan.firmware, files, signal);
  await createDisk(
    qemu,
    { path: files.disk, image: plan.image, megabytes: plan.options.diskMegabytes },
    signal,
  );
}

export async function makeMachineFolder(
  directory: string,
  boot: FirstBoot,
  { node, place }: { readonly node: NodeFacts; readonly place: number },
): Promise<MachineFiles> {
  const files = machineFiles(directory, node);
  await mkdir(files.folder, { recursive: true, mode: 0o700 });
  await writeSeed(files.seed, { instanceId: node.id, hostname: nodeHostname(node), place, boot });
  return files;
}

export const toPorts = ([ssh = 0, http = 0, https = 0]: readonly number[]): NodePorts => ({
  ssh,
  http,
  https,
});

export const startFailure = ({ systemName }: Qemu, name: string, end: ProgramEnd): ClusterError =>
  qemuFailure(`${systemName} for ${name}`, end);

const nodeHost = "127.0.0.1";

/** The cluster's facts while they can still change. They are saved to the disk before anything relies on them. */
interface Book {
  node(place: number): NodeFacts;
  changePorts(place: number, ports: NodePorts): Promise<void>;
}

async function openBook({
  directory,
  facts,
}: Pick<StartPlan, "directory" | "facts">): Promise<Book> {
  const nodes = [...facts.nodes];
  const knownHosts = createKnownHosts(creationFiles(directory).knownHosts);
  // Read before any port changes, because a node may get another one's former port.
  const hostKeys = await Promise.all(
    nodes.map(async ({ ports }) => knownHosts.expected(nodeHost, ports.ssh)),
  );
  const node = (place: number): NodeFacts => {
    const found = nodes[place];
    if (found === undefined) throw new RangeError(`There is no machine with the number ${place}`);
    return found;
  };
  const save = async (): Promise<void> => writeClusterFacts(directory, { ...facts, nodes });
  let saved = Promise.resolve();
  return {
    node,
    changePorts: async (place, ports) => {
      nodes[place] = { ...node(place), ports };
      const hostKey = hostKeys[place];
      if (hostKey !== undefined) await knownHosts.pin(nodeHost, ports.ssh, hostKey);
      // Of two writes at once, the one that knows fewer new ports may end last.
      saved = saved.catch(() => {}).then(save);
      await saved;
    },
  };
}

/**
 * Finds this many different TCP ports of 127.0.0.1 that nobody listens on now. Another program may
 * take them before the caller does.
 */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === "string")
      throw new TypeError("A listening server has no port");
    return address.port;
  });
  await Promise.all(servers.map(close));
  return ports;
}

async function listen(): Promise<Server> {
  const server = createServer();
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject).listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  return server;
}

async function close(server: Server): Promise<void> {
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
}

interface Look {
  readonly architecture: Pick<Architecture, "firmware" | "name">;
  readonly clock: Pick<Clock, "now">;
  /** The ids of the nodes that have let us in. */
  readonly up: ReadonlySet<string>;
}

/**
 * Looks at all machines of a creation. Throws `machine-failed` if one of them has ended or will
 * never boot, or all have been removed.
 */
export async function lookAtMachines(
  directory: string,
  { architecture, clock, up }: Look,
): Promise<ClusterRecord> {
  const cluster = await observeCluster(await readOwnCluster(directory));
  const ended = cluster.nodes.find((node) => node.state === "ended" || node.state === "stopped");
  if (ended !== undefined)
    throw machineFailed(ended, {
      output: await consoleOutput(directory, ended).catch(() => ""),
      hint: `The image must boot from a disk with ${architecture.firmware}; the console output in the saved logs may show the cause.`,
    });
  for (const node of cluster.nodes.filter(({ id }) => !up.has(id))) {
    const machine = {
      files: machineFiles(directory, node),
      hostname: nodeHostname(node),
      name: nodeReference(node),
    };
    await assertBoots(machine, architecture, clock);
  }
  return cluster;
}

/** Reads what this creation has saved about itself. Throws `machine-failed` if somebody has removed it meanwhile. */
export async function readOwnCluster(directory: string): Promise<StoredCluster> {
  const stored = await readCluster(directory);
  if (stored !== undefined) return stored;
  throw new ClusterError("machine-failed", "The cluster was removed while it was being created.", {
    hint: "If that was a mistake, create it again.",
    facts: { directory },
  });
}
