import { distributionOption, readOptions } from "../../model/option-schema.ts";
import { defaultDistribution, distributions } from "./images/images.ts";
import type { Accelerator, VmOptions } from "./vm-options.ts";
import { vmOptions, vmProblems, vmSchema } from "./vm-schema.ts";

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
export function readVmOptions(given: VmBackendOptions): {
  readonly distribution: string;
  readonly options: VmOptions;
} {
  const values = readOptions(librarySchema, { ...given }, vmProblems);
  return { distribution: values.linuxDistribution, options: vmOptions(values) };
}

const librarySchema = {
  ...vmSchema,
  linuxDistribution: distributionOption(distributions, defaultDistribution),
} as const;
