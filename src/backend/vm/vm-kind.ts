import { lifetimeSummary } from "../../model/option-schema.ts";
import { defineBackend } from "../contract.ts";
import { parseVmOptions, vmSchema } from "./options.ts";
import type { Architecture } from "./qemu/architecture.ts";

/** Everything specific to `cluster-vm`: disk images and machine sizes. */
export const vmKind = vmKindOf();

/** Machines have this computer's architecture, or the given one. */
export function vmKindOf(architecture?: Architecture) {
  return defineBackend({
    name: "vm",
    summary: "Create and manage test clusters of virtual machines on this computer",
    options: vmSchema,
    parse: parseVmOptions,
    machineId: /^vm-[0-9a-f]{8}-[0-9]+$/,
    local: {
      snapshots:
        "`create` saves memory and disks of all machines at one moment. `restore` lets them continue from there: processes keep running, nothing boots, and the clocks are corrected. Both work while jobs run; `restore` also restarts stopped machines, and works after a restart of this computer.",
      templates:
        "A template is a machine that was booted once; the nodes of later clusters continue as copies of it. `create` makes the templates it needs, and removes unused ones if they take too much space.",
      copies:
        "Create the cluster from a snapshot, or from a file that `snapshot save` wrote, instead of an artifact: it continues where the snapshot was made, with the same nodes and platform. The path of a file contains a / or no colon",
      files:
        "`save` writes a snapshot to one file, from which `create --from FILE` makes clusters on other computers. The nodes continue from memory if the other computer has the same release of QEMU and, with an accelerator, the same processor; otherwise they boot from the saved disks. The file contains everything on the nodes, secrets and the keys that open them included.",
      power:
        "A stopped machine shuts down and keeps its disk; after a restart of this computer, all machines are stopped. A paused machine keeps its memory, and its clock is corrected when it continues.",
      lifetimes: lifetimeSummary,
    },
    open: async (work) => {
      const { createVmBackend } = await import("./vm-backend.ts");
      return createVmBackend(work, architecture);
    },
    doctor: {
      subject: "this computer and QEMU",
      checks: async (work) => {
        const { vmChecks } = await import("./checks.ts");
        return vmChecks(work, architecture);
      },
    },
  });
}
