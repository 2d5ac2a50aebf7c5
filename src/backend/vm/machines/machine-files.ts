import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { nodeReference, type NodeRecord } from "../../../model/cluster-record.ts";
import { errorCode } from "../../../system/error-code.ts";

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
  /** QEMU's stderr. */
  readonly qemuLog: string;
  /** There once QEMU said that the machine runs. A try that found its ports taken leaves a console too. */
  readonly started: string;
}

export const qemuLogName = "qemu.txt";

export function machineFiles(directory: string, node: Pick<NodeRecord, "role" | "index">): MachineFiles {
  const folder = join(machinesFolder(directory), nodeReference(node));
  return {
    folder,
    ...processFiles(folder),
    flash: { program: join(folder, "firmware.qcow2"), variables: join(folder, "firmware-variables.qcow2") },
    seed: join(folder, "seed"),
    console: join(folder, "console.txt"),
    qemuLog: join(folder, qemuLogName),
    started: join(folder, "started"),
  };
}

export const processFiles = (folder: string): ProcessFiles => ({
  disk: join(folder, "disk.qcow2"),
  pid: join(folder, "qemu.pid"),
});

/** Of every QEMU that a creation may have, told by the folders alone: facts may be gone, damaged, or of another version. */
export async function allProcessFiles(directory: string): Promise<readonly ProcessFiles[]> {
  const machines = machinesFolder(directory);
  const entries = await readdir(machines, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => processFiles(join(machines, name)));
}

export const machinesFolder = (directory: string): string => join(directory, "machines");
