import { join } from "node:path";
import { nodeReference, type NodeRecord } from "../../cluster/record.ts";

/** What a QEMU of ours is found by, and can't begin without; by absolute path. */
export interface ProcessFiles {
  readonly disk: string;
  /** QEMU's: there while it runs, gone after an orderly end, left over where it was killed. */
  readonly pid: string;
}

/** What one machine keeps in its cluster's folder; the disk is a layer above the image. */
export interface MachineFiles extends ProcessFiles {
  readonly folder: string;
  /** Where there is firmware that isn't built in: layers above it. */
  readonly flash: { readonly program: string; readonly variables: string };
  /** What cloud-init reads at the first boot. */
  readonly seed: string;
  readonly console: string;
  /** There once QEMU said that the machine runs. A try that found its ports taken leaves a console too. */
  readonly started: string;
}

export function machineFiles(directory: string, node: Pick<NodeRecord, "role" | "index">): MachineFiles {
  const folder = join(machinesFolder(directory), nodeReference(node));
  return {
    folder,
    disk: join(folder, "disk.qcow2"),
    flash: { program: join(folder, "firmware.qcow2"), variables: join(folder, "firmware-variables.qcow2") },
    seed: join(folder, "seed"),
    console: join(folder, "console.txt"),
    pid: join(folder, "qemu.pid"),
    started: join(folder, "started"),
  };
}

export const machinesFolder = (directory: string): string => join(directory, "machines");
