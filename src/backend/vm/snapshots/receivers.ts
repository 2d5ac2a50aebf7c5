import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import type { Clock } from "../../../system/runtime.ts";
import type { MachineSettings, NodeFacts, StoredCluster } from "../cluster-facts.ts";
import { usesIpv6 } from "../machines/host-ipv6.ts";
import { startFailure, startMachine } from "../machines/launch.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { runOnMonitor, withShortPath } from "../qemu/monitor.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { endReceivers, receiverFiles } from "./pause-machines.ts";
import { awaitLoaded, migrate, saveState } from "./machine-state.ts";
import { savedFiles } from "./snapshot-files.ts";

export interface Saving {
  readonly stored: StoredCluster;
  readonly machines: MachineSettings;
  readonly folder: string;
  readonly clock: Clock;
}

/**
 * Starts a receiver for each machine, for a caller that holds the machines' lock. They end when the
 * result is disposed of.
 */
export async function startReceivers(
  qemu: Qemu,
  saving: Saving,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const { directory, facts } = saving.stored;
  const end = async (): Promise<void> => endReceivers(directory, new AbortController().signal);
  await end();
  try {
    const start = async (node: NodeFacts): Promise<void> =>
      startReceiver(qemu, saving, node, signal);
    await mapConcurrently(facts.nodes, atOnce, start, signal);
  } catch (error) {
    await end();
    throw error;
  }
  return { [Symbol.asyncDispose]: end };
}

const atOnce = 4;

async function startReceiver(
  qemu: Qemu,
  { stored, machines, folder }: Saving,
  node: NodeFacts,
  signal: AbortSignal,
): Promise<void> {
  const { directory, facts } = stored;
  const machine = machineFiles(directory, node);
  const files = { ...receiverFiles(directory, node), seed: machine.seed };
  await mkdir(files.folder, { mode: 0o700 });
  await mkdir(join(folder, nodeReference(node)), { mode: 0o700 });
  // Nothing is ever read from it: what a disk holds is no part of a machine's state.
  const made = await qemu.image(["create", "-q", "-f", "qcow2", files.disk, "1G"], signal);
  if (made.status !== 0) throw qemuFailure("qemu-img create", made);
  for (const name of ["program", "variables"] as const)
    if (await isAccessible(machine.flash[name]))
      await copyFile(machine.flash[name], files.flash[name]);
  signal.throwIfAborted();
  const end = await startMachine(qemu, {
    architecture: qemu.architecture,
    accelerator: machines.accelerator,
    isSandboxed: machines.isSandboxed,
    options: machines,
    files,
    node: { id: `receiver-${node.id}`, ports: { ssh: 0, http: 0, https: 0 } },
    place: facts.nodes.indexOf(node),
    sockets: { folder: "", count: 1 },
    hasIpv6: await usesIpv6(),
    memory: { path: join(folder, savedFiles(node).memory), isShared: true, continues: true },
    isOfTemplate: machines.template !== undefined,
  });
  if (end.status !== 0) throw startFailure(qemu, `saving ${nodeReference(node)}`, end);
}

/** Passes the memory and the state of a paused machine to its receiver. */
export async function receive(
  { stored: { directory }, folder, clock }: Saving,
  node: NodeFacts,
  signal: AbortSignal,
): Promise<void> {
  const files = receiverFiles(directory, node);
  const from = machineFiles(directory, node).folder;
  const path = join(folder, savedFiles(node).memory);
  await withShortPath(files.folder, "incoming.sock", async (socket) => {
    const uri = `unix:${socket}`;
    await runOnMonitor(files.folder, [{ execute: "migrate-incoming", arguments: { uri } }], signal);
    await migrate({ from, uri, leavesShared: false, path, clock }, signal);
  });
  const failure = (id: "engine-failed" | "deadline-passed", why: string): ClusterError =>
    new ClusterError(id, `The memory of ${nodeReference(node)} cannot be saved: ${why}.`);
  await awaitLoaded({ files, clock, failure }, signal);
}

/** Writes the states that the receivers hold. The machines may run on meanwhile. */
export async function saveStates(
  { stored, folder, clock }: Saving,
  signal: AbortSignal,
): Promise<void> {
  const { directory, facts } = stored;
  const save = async (node: NodeFacts): Promise<void> => {
    const machine = receiverFiles(directory, node).folder;
    await saveState({ machine, path: join(folder, savedFiles(node).state), clock }, signal);
  };
  await mapConcurrently(facts.nodes, atOnce, save, signal);
}
