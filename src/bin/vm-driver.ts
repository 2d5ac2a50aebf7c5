import {
  chooseDistribution,
  defaultDistribution,
  defaultDistributionText,
  distributions,
} from "../backend/vm/images/images.ts";
import {
  accelerators,
  cpusProblem,
  defaults,
  diskProblem,
  imageProblem,
  isUrl,
  memoryProblem,
  readMegabytes,
  sumProblem,
} from "../backend/vm/vm-options.ts";
import { BadValue, option } from "../cli/option.ts";
import { choice, value } from "../cli/value-types.ts";
import { defineDriver } from "../commands/driver.ts";

/** What only `cluster-vm` has: disk images and the size of machines. */
export const vmDriver = defineDriver({
  program: "cluster-vm",
  summary: "Creates and manages test clusters of virtual machines on this machine",
  distributions,
  defaultDistribution,
  defaultDistributionText,
  hasLifetime: false,
  canDestroy: true,
  doctorSubject: "this machine and its QEMU",
  selinuxProblem: (distribution) =>
    /^(?:rocky|almalinux)-/.test(distribution)
      ? undefined
      : `${chooseDistribution(distribution, false)} comes without SELinux`,
  machineId: /^vm-[0-9a-f]{8}-[0-9]+$/,
  placeOptions: {},
  everywhere: undefined,
  creationOptions: {
    memory: option(value(checked(memoryProblem, megabytes)), {
      flag: "--memory",
      summary: "Memory of each node, such as 4g; without a unit, megabytes",
      default: defaults.memoryMegabytes,
      defaultText: `${defaults.memoryMegabytes} MB`,
    }),
    cpus: option(value(checked(cpusProblem, Number)), {
      flag: "--cpus",
      summary: "CPUs of each node",
      default: defaults.cpus,
    }),
    diskSize: option(value(checked(diskProblem, megabytes)), {
      flag: "--disk-size",
      summary: "How large each node's disk may become, such as 40g",
      default: defaults.diskMegabytes,
      defaultText: `${defaults.diskMegabytes / 1024}g`,
    }),
    accelerator: option(choice(accelerators), {
      flag: "--accelerator",
      summary: "QEMU's accelerator: kvm, hvf or tcg; no other is tried",
      defaultText: "the best that works",
    }),
    image: option(value(imageSource, "file"), {
      flag: "--image",
      placeholder: "<path or URL>",
      summary: "Disk image of your own for the nodes, with cloud-init; qcow2 or raw",
      defaultText: "the distribution's, which is downloaded once",
    }),
    imageSha256: option(value(checked(sumProblem, String)), {
      flag: "--image-sha256",
      placeholder: "<sum>",
      summary: "SHA-256 sum of --image; needed for a URL",
    }),
  },
  checkCreation: async ({ image, imageSha256 }, problems) => {
    const problem = imageProblem(image, imageSha256) ?? (await missingFile(image));
    if (problem !== undefined) problems.add(problem);
  },
  open: async (_, surroundings) => {
    const { createVmBackend } = await import("../backend/vm/vm-backend.ts");
    return createVmBackend(surroundings);
  },
  creation: ({ memory, cpus, diskSize, accelerator, image, imageSha256 }) => ({
    memoryMegabytes: memory,
    cpus,
    diskMegabytes: diskSize,
    ...(accelerator !== undefined && { accelerator }),
    ...(image !== undefined && {
      image: { source: image, ...(imageSha256 !== undefined && { sha256: imageSha256 }) },
    }),
  }),
  doctorChecks: async (_, surroundings) => {
    const { vmChecks } = await import("../backend/vm/checks.ts");
    return vmChecks(surroundings);
  },
});

function checked<Value>(
  problemOf: (given: string) => string | undefined,
  read: (given: string) => Value,
): (given: string) => Value {
  return (given) => {
    const problem = problemOf(given);
    if (problem !== undefined) throw new BadValue(problem);
    return read(given);
  };
}

function megabytes(given: string): number {
  return readMegabytes(given) ?? 0;
}

/** The machines' disks name the image by its absolute path. */
async function imageSource(given: string, { cwd }: { readonly cwd: string }): Promise<string> {
  if (given === "") throw new BadValue("the value is empty");
  const { resolve } = await import("node:path");
  return isUrl(given) ? given : resolve(cwd, given);
}

async function missingFile(image: string | undefined): Promise<string | undefined> {
  if (image === undefined || isUrl(image)) return undefined;
  const { access } = await import("node:fs/promises");
  return access(image).then(
    () => undefined,
    () => `--image: ${image} is not there`,
  );
}
