import { ClusterError } from "../../errors.ts";
import { defaultDistribution, distributions } from "./images/images.ts";
import type { Accelerator, VmOptions } from "./vm-options.ts";
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

/** What clusters of the library's VmBackend are made of. */
export interface VmBackendOptions {
  /** The operating system of the nodes, such as `debian-12`, which is the default where the platform does not need another one. */
  readonly linuxDistribution?: string;
  /** Memory of each node, such as `4g`; default: `2g`. */
  readonly memory?: string;
  /** CPUs of each node; default: 2. */
  readonly cpus?: number;
  /** How large each node's disk may become, such as `40g`; default: `20g`. */
  readonly diskSize?: string;
  /** `kvm`, `hvf` or `tcg`: QEMU uses this one only; default: the best that works. */
  readonly accelerator?: Accelerator;
  /** A disk image of your own with cloud-init, instead of the distribution's: an absolute path, or a URL, which needs the sum. */
  readonly image?: string;
  /** The image's SHA-256 sum, hexadecimal. */
  readonly imageSha256?: string;
}

/** The options as a creation wants them; `bad-usage` with all that is wrong with them. */
export function readVmOptions(options: VmBackendOptions): {
  readonly distribution: string;
  readonly options: VmOptions;
} {
  const { linuxDistribution = defaultDistribution, image, imageSha256, accelerator } = options;
  const problems = [
    linuxDistribution === defaultDistribution || distributions.includes(linuxDistribution)
      ? undefined
      : `No cloud image is known for the distribution "${linuxDistribution}"; known: ${distributions.join(", ")}`,
    options.memory === undefined ? undefined : memoryProblem(options.memory),
    options.cpus === undefined ? undefined : cpusProblem(String(options.cpus)),
    options.diskSize === undefined ? undefined : diskProblem(options.diskSize),
    accelerator === undefined || accelerators.includes(accelerator)
      ? undefined
      : `"${accelerator}" is no accelerator; known: ${accelerators.join(", ")}`,
    imageSha256 === undefined ? undefined : sumProblem(imageSha256),
    imageProblem(image, imageSha256),
    image === undefined || isUrl(image) || image.startsWith("/") ? undefined : `"${image}" is no absolute path`,
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new ClusterError("bad-usage", problems.join("; "), { facts: { problems } });
  return {
    distribution: linuxDistribution,
    options: {
      memoryMegabytes: readMegabytes(options.memory ?? "") ?? defaults.memoryMegabytes,
      cpus: options.cpus ?? defaults.cpus,
      diskMegabytes: readMegabytes(options.diskSize ?? "") ?? defaults.diskMegabytes,
      ...(accelerator !== undefined && { accelerator }),
      ...(image !== undefined && {
        image: { source: image, ...(imageSha256 !== undefined && { sha256: imageSha256 }) },
      }),
    },
  };
}
