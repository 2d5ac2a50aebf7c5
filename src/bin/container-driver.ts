import { cpusProblem, imageProblem, memoryProblem, volumeProblem } from "../backend/container/container-options.ts";
import {
  defaultDistribution,
  defaultDistributionText,
  distributions,
} from "../backend/container/launch/containerfiles.ts";
import { engineNames } from "../backend/container/engine/engine-kind.ts";
import { BadValue, option } from "../cli/option.ts";
import { choice, value } from "../cli/value-types.ts";
import { defineDriver } from "../commands/driver.ts";

/** What only `cluster-container` has: images, volumes and limits of containers. */
export const containerDriver = defineDriver({
  program: "cluster-container",
  summary: "Creates and manages test clusters of containers on this machine",
  distributions,
  defaultDistribution,
  defaultDistributionText,
  hasLifetime: false,
  canDestroy: true,
  doctorSubject: "this machine and its container engine",
  selinuxProblem: () => "containers have the SELinux of the machine that they run on, whose mode is not ours to change",
  machineId: /^[0-9a-f]{12}$/,
  placeOptions: {
    engine: option(choice(engineNames), {
      flag: "--engine",
      summary: "The container engine",
      defaultText: "the first that answers, Docker before Podman",
    }),
  },
  everywhere: undefined,
  creationOptions: {
    customVolume: option(value(customVolume), {
      flag: "--custom-volume",
      placeholder: "</path/here:/path/on/nodes[:ro]>",
      summary: "Folder or file of this machine that all nodes have too",
      repeatable: true,
    }),
    memory: option(value(checked(memoryProblem)), {
      flag: "--memory",
      summary: "Memory that each node may use, such as 2g",
      defaultText: "no limit",
    }),
    cpus: option(value(checked(cpusProblem)), {
      flag: "--cpus",
      summary: "CPUs that each node may use, such as 1.5",
      defaultText: "no limit",
    }),
    nodeImage: option(value(checked(imageProblem)), {
      flag: "--node-image",
      summary: "Image of your own for the nodes, with systemd and sshd",
      defaultText: "one that is built for the distribution, once",
    }),
  },
  checkCreation: () => {},
  open: async ({ engine }, surroundings, signal) => {
    const { openContainerBackend } = await import("../backend/container/container-backend.ts");
    return openContainerBackend({ engine }, surroundings, signal);
  },
  creation: ({ customVolume: volumes, memory, cpus, nodeImage }) => ({
    volumes,
    ...(memory !== undefined && { memory }),
    ...(cpus !== undefined && { cpus }),
    ...(nodeImage !== undefined && { nodeImage }),
  }),
  doctorChecks: async ({ engine }, surroundings, signal) => {
    const { containerChecks } = await import("../backend/container/checks.ts");
    return containerChecks(engine, surroundings, signal);
  },
});

function checked(problemOf: (given: string) => string | undefined): (given: string) => string {
  return (given) => {
    const problem = problemOf(given);
    if (problem !== undefined) throw new BadValue(problem);
    return given;
  };
}

/** The engine would make a folder that isn't there, as root. */
async function customVolume(given: string): Promise<string> {
  const problem = volumeProblem(given);
  if (problem !== undefined) throw new BadValue(problem);
  const { access } = await import("node:fs/promises");
  const path = given.slice(0, given.indexOf(":"));
  await access(path).catch(() => {
    throw new BadValue(`${path} is not there`);
  });
  return given;
}
