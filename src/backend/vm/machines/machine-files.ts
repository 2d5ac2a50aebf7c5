import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { nodeReference, type NodeRecord } from "../../../model/cluster-record.ts";
import { errorCode } from "../../../system/error-code.ts";

/** The files that identify one of our QEMU processes and that it can't start without, by absolute path. */
export interface ProcessFiles {
  readonly disk: string;
  /** QEMU's process file. It exists while QEMU runs, disappears after an orderly end, and stays behind after a kill. */
  readonly pid: string;
}

/** The files of one machine in its cluster's folder; the disk is a layer on top of the image. */
export interface MachineFiles extends ProcessFiles {
  readonly folder: string;
  /** Layers on top of the firmware, for machines whose firmware isn't built in. */
  readonly flash: { readonly program: string; readonly variables: string };
  /** The files that cloud-init reads at the first boot. */
  readonly seed: string;
  /** The newest part of the console output. */
  readonly console: string;
  /** QEMU's stderr. */
  readonly qemuLog: string;
  /** Exists once QEMU has reported that the machine runs. A console file isn't enough: an attempt that found its ports taken leaves one too. */
  readonly started: string;
}

export const qemuLogName = "qemu.txt";

/** The files in a machine's folder with the end of its console output. */
export const consoleNames = { earlier: "console-earlier.txt", current: "console.txt" } as const;

export function machineFiles(directory: string, node: Pick<NodeRecord, "role" | "index">): MachineFiles {
  const folder = join(machinesFolder(directory), nodeReference(node));
  return {
    folder,
    ...processFiles(folder),
    flash: { program: join(folder, "firmware.qcow2"), variables: join(folder, "firmware-variables.qcow2") },
    seed: join(folder, "seed"),
    console: join(folder, consoleNames.current),
    qemuLog: join(folder, qemuLogName),
    started: join(folder, "started"),
  };
}

export const processFiles = (folder: string): ProcessFiles => ({
  disk: join(folder, "disk.qcow2"),
  pid: join(folder, "qemu.pid"),
});

/** Returns the files of every QEMU that a creation may have, found by the folders alone: facts may be missing, damaged, or from another version. */
export async function allProcessFiles(directory: string): Promise<readonly ProcessFiles[]> {
  const machines = machinesFolder(directory);
  const entries = await readdir(machines, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => processFiles(join(machines, name)));
}

export const machinesFolder = (directory: string): string => join(directory, "machines");
