import {
  defaultDistribution,
  defaultDistributionText,
  distributions,
  selinuxProblem,
} from "../backend/vm/images/images.ts";
import { imageFileProblems, vmOptions, vmProblems, vmSchema } from "../backend/vm/options.ts";
import { backendOptions } from "../commands/backend-options.ts";
import { defineDriver } from "../commands/driver.ts";

/** Everything specific to `cluster-vm`: disk images and machine sizes. */
export const vmDriver = defineDriver({
  program: "cluster-vm",
  summary: "Create and manage test clusters of virtual machines on this machine",
  distributions,
  defaultDistribution,
  defaultDistributionText,
  hasLifetime: false,
  canHandOver: false,
  snapshots: {
    contents:
      "`create` saves memory and disks of all machines at one moment. `restore` lets them continue from there: processes keep running, nothing boots, and the clocks are corrected. Both work while jobs run; `restore` also restarts stopped machines, and works after a restart of this computer.",
    canCopy: true,
  },
  doctorSubject: "this machine and QEMU",
  selinuxProblem,
  machineId: /^vm-[0-9a-f]{8}-[0-9]+$/,
  placeOptions: {},
  everywhere: undefined,
  creationOptions: backendOptions(vmSchema),
  checkCreation: async (given, problems) => {
    for (const problem of [...vmProblems(given), ...(await imageFileProblems(given.image))]) problems.add(problem);
  },
  open: async (_, runtime) => {
    const { createVmBackend } = await import("../backend/vm/vm-backend.ts");
    return createVmBackend(runtime);
  },
  creation: vmOptions,
  doctorChecks: async (_, runtime) => {
    const { vmChecks } = await import("../backend/vm/checks.ts");
    return vmChecks(runtime);
  },
});
