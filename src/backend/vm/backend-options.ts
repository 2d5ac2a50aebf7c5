import { distributionOption, readOptions } from "../../model/option-schema.ts";
import { type Shape, anyText, optional, readArguments, textOrNumber } from "../../model/read-arguments.ts";
import { defaultDistribution, distributions } from "./images/images.ts";
import { type Accelerator, type VmOptions, vmOptions, vmProblems, vmSchema } from "./options.ts";

/** Options for the clusters of the library's VmBackend. */
export interface VmBackendOptions {
  /** The operating system of the nodes, such as `debian-12`, which is the default unless the platform needs another one. */
  readonly linuxDistribution?: string;
  /** Memory of each node, such as `4g`; default: `2g`. */
  readonly memory?: string;
  /** CPUs of each node; default: 2. */
  readonly cpus?: number;
  /** The maximum size of each node's disk, such as `40g`; default: `20g`. */
  readonly diskSize?: string;
  /** `kvm`, `hvf` or `tcg`: QEMU uses only this one; default: the best that works. */
  readonly accelerator?: Accelerator;
  /** A disk image of your own with cloud-init, instead of the distribution's: an absolute path, or a URL, which requires the SHA-256 sum. */
  readonly image?: string;
  /** The image's SHA-256 sum, hexadecimal. */
  readonly imageSha256?: string;
}

const shape: Shape<VmBackendOptions> = {
  linuxDistribution: optional(anyText),
  memory: optional(textOrNumber),
  cpus: optional(textOrNumber),
  diskSize: optional(anyText),
  accelerator: optional(anyText),
  image: optional(anyText),
  imageSha256: optional(anyText),
};

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export function readVmOptions(given: VmBackendOptions): {
  readonly distribution: string;
  readonly options: VmOptions;
} {
  const values = readOptions(librarySchema, { ...readArguments(given, shape) }, vmProblems);
  return { distribution: values.linuxDistribution, options: vmOptions(values) };
}

const librarySchema = {
  ...vmSchema,
  linuxDistribution: distributionOption(distributions, defaultDistribution),
} as const;
