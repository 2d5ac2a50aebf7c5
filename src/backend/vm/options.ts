import { optionName } from "../../references.ts";
import {
  distributionOption,
  offlineOption,
  readLibraryOptions,
  switched,
  withDefaults,
  type LibraryOptions,
  type SchemaValues,
} from "../../model/option-schema.ts";
import { type Hardware, hardwareOf, parseCpuModel } from "./hardware.ts";
import { readMegabytes } from "../../model/parse-values.ts";
import { matching, refined, string } from "../../model/reader.ts";
import { inDigits, sha256Rule, wholeNumber, wordOf } from "../../model/rule.ts";
import { type Checked, problem } from "../../model/checked.ts";
import {
  defaultDistribution,
  defaultDistributionText,
  distributions,
  selinuxProblem,
} from "./images/images.ts";

/** From the fastest to the slowest: Linux's, macOS's, and QEMU's own translation, which works everywhere. */
export const accelerators = ["kvm", "hvf", "tcg"] as const;
export type Accelerator = (typeof accelerators)[number];

/** Options that only clusters of virtual machines have. The command line checks them. */
export interface VmOptions extends Hardware {
  /** The disk's size as the node sees it. It takes only as much space as the node writes. */
  readonly diskMegabytes: number;
  /** The accelerator to use in any case. Absent: the best that works. */
  readonly accelerator?: Accelerator;
  /** Whether nodes reach each other and nothing else. */
  readonly offline?: boolean;
  /** The user's own image. Absent: the distribution's. */
  readonly image?: OwnImage;
  /**
   * Machines are made from templates, which may take this much space before unused ones are
   * removed. Absent: every machine boots.
   */
  readonly templates?: { readonly mostMegabytes: number };
}

/** A file by its absolute path, or a URL, which requires the sum. */
interface OwnImage {
  readonly source: string;
  /** Hexadecimal. */
  readonly sha256?: string;
}

export const defaults = {
  memoryMegabytes: 2048,
  cpus: 2,
  diskMegabytes: 20 * 1024,
  templateMegabytes: 10 * 1024,
} as const;

const leastMemoryMegabytes = 256;
const sizeWithUnit = refined(matching(/[mgt]$/i), readMegabytes);

/** A disk in the qcow2 format has at most this size, with QEMU's usual clusters. */
const mostDiskTerabytes = 2048;
/** The machines of both architectures have no more. */
const mostCpus = 255;

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** Returns what is wrong with the combination of an image and its sum. */
export function imageProblem(
  source: string | undefined,
  sha256: string | undefined,
): string | undefined {
  if (source === undefined)
    return sha256 === undefined
      ? undefined
      : `${optionName("imageSha256")} is only allowed with ${optionName("image")}`;
  if (isUrl(source))
    return sha256 === undefined
      ? `${optionName("image")}: a URL requires ${optionName("imageSha256")}`
      : undefined;
  return undefined;
}

export const vmSchema = {
  memory: {
    summary: "Memory of each node, such as 4g; a number without a unit means megabytes",
    default: defaults.memoryMegabytes,
    defaultText: `${defaults.memoryMegabytes} MB`,
    isNumeric: true,
    read: refined(refined(string, readMegabytes), (size) =>
      size < leastMemoryMegabytes ? undefined : size,
    ),
    what: `a size of at least ${leastMemoryMegabytes} MB, such as 2048 or 4g`,
  },
  cpus: {
    summary: "CPUs of each node",
    default: defaults.cpus,
    isNumeric: true,
    read: inDigits(wholeNumber(1, mostCpus)).read,
    what: `a whole number of CPUs such as 2, at most ${mostCpus}`,
  },
  diskSize: {
    summary: "Maximum size of each node's disk, such as 40g",
    default: defaults.diskMegabytes,
    defaultText: `${defaults.diskMegabytes / 1024}g`,
    read: refined(sizeWithUnit, (size) =>
      size > mostDiskTerabytes * 1024 ** 2 ? undefined : size,
    ),
    what: `a size with a unit of at most ${mostDiskTerabytes}t, such as 20g`,
  },
  accelerator: {
    summary: "QEMU accelerator: kvm, hvf or tcg; if set, no other is tried",
    defaultText: "the best one that works",
    ...wordOf(accelerators),
  },
  cpuModel: {
    placeholder: "<model>",
    summary:
      "CPU model of the nodes, such as Nehalem: saved memory then also fits other computers that can offer it",
    defaultText: "this computer's processor; under tcg, all that QEMU can translate",
    read: parseCpuModel,
    what: "a CPU model of QEMU such as Nehalem",
  },
  freshBoot: {
    isFlag: true,
    summary: "Boot every node, instead of copying a template that was booted once",
    default: false,
    ...switched,
  },
  templateSpace: {
    summary: "Disk space for templates; if they need more, unused ones are removed",
    default: defaults.templateMegabytes,
    defaultText: `${defaults.templateMegabytes / 1024}g`,
    read: sizeWithUnit,
    what: "a size with a unit, such as 20g",
  },
  image: {
    placeholder: "<path or URL>",
    summary: "Your own disk image for the nodes, in qcow2 or raw format; must contain cloud-init",
    defaultText: "the distribution's image, downloaded once",
    completes: "file",
    // The machines' disks name the image by its absolute path.
    read: refined(string, (image) => (isUrl(image) || image.startsWith("/") ? image : undefined)),
    what: "an absolute path",
  },
  imageSha256: {
    placeholder: "<sum>",
    summary: `SHA-256 checksum of ${optionName("image")}; required if that is a URL`,
    ...sha256Rule,
  },
  offline: offlineOption,
  linuxDistribution: distributionOption(
    distributions,
    defaultDistribution,
    defaultDistributionText,
    selinuxProblem,
  ),
} as const;

type VmValues = SchemaValues<typeof vmSchema>;

/** Also requires an image file to exist on this machine. */
export async function parseVmOptions(values: Partial<VmValues>): Promise<Checked<VmOptions>> {
  const { image } = values;
  const combined = combineValues(values);
  if (combined.problems !== undefined || image === undefined || isUrl(image)) return combined;
  const [{ access }, { unreachable }] = await Promise.all([
    import("node:fs/promises"),
    import("../../system/files/private-file.ts"),
  ]);
  return access(image).then(
    () => combined,
    (error: unknown) => problem(`${optionName("image")}: ${image} ${unreachable(error)}`),
  );
}

function combineValues(given: Partial<VmValues>): Checked<VmOptions> {
  const values = withDefaults(vmSchema, given);
  const { memory, diskSize, accelerator, freshBoot, templateSpace, image, imageSha256 } = values;
  const found = imageProblem(image, imageSha256);
  if (found !== undefined) return problem(found);
  return {
    value: {
      ...hardwareOf({ ...values, memoryMegabytes: memory }),
      diskMegabytes: diskSize,
      ...(values.offline && { offline: true }),
      ...(accelerator !== undefined && { accelerator }),
      ...(!freshBoot && { templates: { mostMegabytes: templateSpace } }),
      ...(image !== undefined && {
        image: { source: image, ...(imageSha256 !== undefined && { sha256: imageSha256 }) },
      }),
    },
  };
}

/** Options for the clusters of the library's VmBackend. */
export type VmBackendOptions = LibraryOptions<typeof vmSchema>;

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export const readVmOptions = (given: VmBackendOptions) =>
  readLibraryOptions(vmSchema, given, combineValues);
