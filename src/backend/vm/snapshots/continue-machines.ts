import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import type { Clock } from "../../../system/runtime.ts";
import { systemTemporaryFolder } from "../../../system/files/temporary-folder.ts";
import { poll } from "../../../system/poll.ts";
import type { NodeFacts, StoredCluster } from "../cluster-facts.ts";
import { startMachines } from "../machines/launch.ts";
import { machineFiles } from "../machines/machine-files.ts";
import { isRunning } from "../machines/machine-process.ts";
import { recordSockets, removeSockets } from "../machines/private-network.ts";
import { queryRunState } from "../qemu/monitor.ts";
import { type Qemu, qemuMessage } from "../qemu/qemu.ts";
import { resumeMachines } from "./pause-machines.ts";
import { savedFiles, type SnapshotFacts } from "./snapshot-files.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { readOwnText } from "../../../system/files/read-text.ts";

export interface ContinuePlan {
  /** Its disks are those of the snapshot. */
  readonly cluster: StoredCluster;
  /** The snapshot's folder. */
  readonly folder: string;
  readonly saved: SnapshotFacts;
  readonly clock: Clock;
}

/** Starts machines from saved memory. All continue at about the same moment. */
export async function continueMachines(qemu: Qemu, plan: ContinuePlan, signal: AbortSignal): Promise<void> {
  const { cluster, folder, saved, clock } = plan;
  const { directory, facts } = cluster;
  const sockets = await systemTemporaryFolder();
  await recordSockets(directory, sockets.path);
  await startMachines(
    qemu,
    {
      directory,
      facts,
      options: saved.machines,
      accelerator: saved.machines.accelerator,
      isSandboxed: saved.machines.isSandboxed,
      sockets: { folder: sockets.path, count: facts.nodes.length },
      clock,
      memoryOf: (node) => join(folder, savedFiles(node).memory),
    },
    signal,
  );
  await Promise.all(facts.nodes.map(async (node) => awaitLoaded({ directory, node, clock }, signal)));
  await resumeMachines({ directory, nodes: facts.nodes });
  await removeSockets(directory);
}

async function awaitLoaded(
  { directory, node, clock }: { readonly directory: string; readonly node: NodeFacts; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const files = machineFiles(directory, node);
  const look = async (): Promise<true | undefined> => {
    const state = await queryRunState(files.folder);
    if (state === "paused" || state === "postmigrate") return true;
    if (state !== undefined || (await isRunning(files))) return undefined;
    const said = qemuMessage(await readOwnText(files.qemuLog).catch(() => ""), 2) ?? "it ended";
    throw new ClusterError(
      "engine-failed",
      `QEMU cannot continue ${nodeReference(node)} from its memory: ${outside(said)}.`,
      { hint: "Restore another snapshot, or create the cluster again." },
    );
  };
  if ((await poll(look, ruleOf(waits.memoryLoad, clock), signal)) !== undefined) return;
  throw new ClusterError("deadline-passed", `QEMU did not load the memory of ${nodeReference(node)} in time.`, {
    hint: "See whether this machine's disk is slow, then restore again.",
  });
}
