import {
  containerOptions,
  containerPlaceSchema,
  containerSchema,
  volumeProblems,
} from "../backend/container/options.ts";
import {
  defaultDistribution,
  defaultDistributionText,
  distributions,
  selinuxProblem,
} from "../backend/container/distributions.ts";
import { backendOptions } from "../commands/backend-options.ts";
import { defineDriver } from "../commands/driver.ts";

/** Everything specific to `cluster-container`: images, volumes and container limits. */
export const containerDriver = defineDriver({
  program: "cluster-container",
  summary: "Create and manage test clusters of containers on this machine",
  distributions,
  defaultDistribution,
  defaultDistributionText,
  hasLifetime: false,
  canHandOver: false,
  snapshots: {
    contents:
      "`create` saves the file systems of all nodes at one moment. `restore` restarts the nodes from there, with the same addresses: their services boot, and nothing is installed. Folders of this machine that nodes mount are not included.",
    canCopy: false,
  },
  doctorSubject: "this machine and its container engine",
  selinuxProblem,
  machineId: /^[0-9a-f]{12}$/,
  placeOptions: backendOptions(containerPlaceSchema),
  everywhere: undefined,
  creationOptions: backendOptions(containerSchema, { customVolumes: "--custom-volume" }),
  checkCreation: async ({ customVolumes = [] }, problems) => {
    for (const problem of await volumeProblems(customVolumes)) problems.add(problem);
  },
  open: async ({ engine }, runtime, signal) => {
    const { openContainerBackend } = await import("../backend/container/container-backend.ts");
    return openContainerBackend({ engine }, runtime, signal);
  },
  creation: containerOptions,
  doctorChecks: async ({ engine }, runtime, signal) => {
    const { containerChecks } = await import("../backend/container/checks.ts");
    return containerChecks(engine, runtime, signal);
  },
});
