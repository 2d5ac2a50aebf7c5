import { ClusterError } from "../../errors.ts";
import { checked, oneOf } from "../../model/option-schema.ts";
import type { SchemaValues } from "../../model/option-schema.ts";
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
} from "./vm-options.ts";
import type { VmOptions } from "./vm-options.ts";

/** Options that only clusters of virtual machines have. */
export const vmSchema = {
  memory: {
    summary: "Memory of each node, such as 4g; a number without a unit means megabytes",
    default: defaults.memoryMegabytes,
    defaultText: `${defaults.memoryMegabytes} MB`,
    read: (given: string): number => megabytes(checked(memoryProblem)(given)),
  },
  cpus: {
    summary: "CPUs of each node",
    default: defaults.cpus,
    read: (given: string): number => Number(checked(cpusProblem)(given)),
  },
  diskSize: {
    summary: "Maximum size of each node's disk, such as 40g",
    default: defaults.diskMegabytes,
    defaultText: `${defaults.diskMegabytes / 1024}g`,
    read: (given: string): number => megabytes(checked(diskProblem)(given)),
  },
  accelerator: {
    summary: "QEMU accelerator: kvm, hvf or tcg; if set, no other is tried",
    defaultText: "the best one that works",
    choices: accelerators,
    read: oneOf(accelerators),
  },
  image: {
    placeholder: "<path or URL>",
    summary: "Your own disk image for the nodes, in qcow2 or raw format; must contain cloud-init",
    defaultText: "the distribution's image, downloaded once",
    completes: "file",
    read: readImage,
  },
  imageSha256: {
    placeholder: "<sum>",
    summary: "SHA-256 checksum of `image`; required if that is a URL",
    read: checked(sumProblem),
  },
} as const;

export type VmValues = SchemaValues<typeof vmSchema>;

/** Finds problems with combinations of values. */
export function vmProblems({ image, imageSha256 }: Partial<VmValues>): readonly string[] {
  const problem = imageProblem(image, imageSha256);
  return problem === undefined ? [] : [problem];
}

export function vmOptions({ memory, cpus, diskSize, accelerator, image, imageSha256 }: VmValues): VmOptions {
  return {
    memoryMegabytes: memory,
    cpus,
    diskMegabytes: diskSize,
    ...(accelerator !== undefined && { accelerator }),
    ...(image !== undefined && {
      image: { source: image, ...(imageSha256 !== undefined && { sha256: imageSha256 }) },
    }),
  };
}

/** Finds problems with an image file on this machine. */
export async function imageFileProblems(image: string | undefined): Promise<readonly string[]> {
  if (image === undefined || isUrl(image)) return [];
  const { access } = await import("node:fs/promises");
  return access(image).then(
    () => [],
    () => [`\`image\`: ${image} does not exist`],
  );
}

/** Resolves the path, because the machines' disks name the image by its absolute path. */
function readImage(given: string): string {
  if (given === "") throw new ClusterError("bad-usage", "the value is empty");
  if (isUrl(given) || given.startsWith("/")) return given;
  throw new ClusterError("bad-usage", `"${given}" is not an absolute path`);
}

const megabytes = (given: string): number => readMegabytes(given) ?? 0;
