import {
  containerOptions,
  containerPlaceSchema,
  containerSchema,
  volumeProblems,
} from "../backend/container/container-schema.ts";
import {
  defaultDistribution,
  defaultDistributionText,
  distributions,
} from "../backend/container/launch/containerfiles.ts";
import { backendOptions } from "../commands/backend-options.ts";
import { defineDriver } from "../commands/driver.ts";

/** What only `cluster-container` has: images, volumes and limits of containers. */
export const containerDriver = defineDriver({
  program: "cluster-container",
  summary: "Create and manage test clusters of containers on this machine",
  distributions,
  defaultDistribution,
  defaultDistributionText,
  hasLifetime: false,
  canDestroy: true,
  doctorSubject: "this machine and its container engine",
  selinuxProblem: () => "containers have the SELinux of the machine that they run on, whose mode is not ours to change",
  machineId: /^[0-9a-f]{12}$/,
  placeOptions: backendOptions(containerPlaceSchema),
  everywhere: undefined,
  creationOptions: backendOptions(containerSchema, { customVolumes: "--custom-volume" }),
  checkCreation: async ({ customVolumes = [] }, problems) => {
    for (const problem of await volumeProblems(customVolumes)) problems.add(problem);
  },
  open: async ({ engine }, surroundings, signal) => {
    const { openContainerBackend } = await import("../backend/container/container-backend.ts");
    return openContainerBackend({ engine }, surroundings, signal);
  },
  creation: containerOptions,
  doctorChecks: async ({ engine }, surroundings, signal) => {
    const { containerChecks } = await import("../backend/container/checks.ts");
    return containerChecks(engine, surroundings, signal);
  },
});
