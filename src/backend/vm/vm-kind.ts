import { defineBackend } from "../contract.ts";
import { selinuxProblem } from "./images/images.ts";
import { parseVmOptions, vmSchema } from "./options.ts";

/** Everything specific to `cluster-vm`: disk images and machine sizes. */
export const vmKind = defineBackend({
  name: "vm",
  summary: "Create and manage test clusters of virtual machines on this machine",
  options: vmSchema,
  parse: parseVmOptions,
  machineId: /^vm-[0-9a-f]{8}-[0-9]+$/,
  hasLifetime: false,
  parts: {
    snapshots:
      "`create` saves memory and disks of all machines at one moment. `restore` lets them continue from there: processes keep running, nothing boots, and the clocks are corrected. Both work while jobs run; `restore` also restarts stopped machines, and works after a restart of this computer.",
    templates:
      "A template is a machine that was booted once; the nodes of later clusters continue as copies of it. `create` makes the templates it needs, and removes unused ones if they take too much space.",
    copies:
      "Create the cluster from a snapshot instead of an artifact: it continues where the snapshot was made, with the same nodes and platform",
    power:
      "A stopped machine shuts down and keeps its disk; after a restart of this computer, all machines are stopped. A paused machine keeps its memory, and its clock is corrected when it continues.",
  },
  selinuxProblem,
  open: async (_, runtime) => {
    const { createVmBackend } = await import("./vm-backend.ts");
    return createVmBackend(runtime);
  },
  doctor: {
    subject: "this machine and QEMU",
    checks: async (_, runtime) => {
      const { vmChecks } = await import("./checks.ts");
      return vmChecks(runtime);
    },
  },
});
