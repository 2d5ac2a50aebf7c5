import { join } from "node:path";
import { nodeReference, type NodeRecord } from "../../cluster/record.ts";

/** What one machine keeps in its cluster's folder, by absolute path. */
export interface MachineFiles {
  readonly folder: string;
  /** A layer above the image. */
  readonly disk: string;
  /** Where there is firmware that isn't built in: layers above it. */
  readonly flash: { readonly program: string; readonly variables: string };
  /** What cloud-init reads at the first boot. */
  readonly seed: string;
  readonly console: string;
  /** QEMU's: there while it runs, gone after an orderly end, left over where it was killed. */
  readonly pid: string;
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
  };
}

export const machinesFolder = (directory: string): string => join(directory, "machines");
