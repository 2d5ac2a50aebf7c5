import { join } from "node:path";
import { nodeReference, type NodeRecord } from "../../cluster/record.ts";

/** What one machine keeps in its cluster's folder, by absolute path. */
export interface MachineFiles {
  readonly folder: string;
  /** A layer above the image. */
  readonly disk: string;
  /** What cloud-init reads at the first boot. */
  readonly seed: string;
  readonly console: string;
  /** QEMU's: there while it runs, gone after an orderly end, left over where it was killed. */
  readonly pid: string;
  /** There once QEMU said that the machine runs. A try that found its ports taken leaves a console too. */
  readonly started: string;
}

export function machineFiles(directory: string, node: Pick<NodeRecord, "role" | "index">): MachineFiles {
  const folder = join(machinesFolder(directory), nodeReference(node));
  return {
    folder,
    disk: join(folder, "disk.qcow2"),
    seed: join(folder, "seed"),
    console: join(folder, "console.txt"),
    pid: join(folder, "qemu.pid"),
    started: join(folder, "started"),
  };
}

export const machinesFolder = (directory: string): string => join(directory, "machines");
