import {
  distributionOption,
  matching,
  offlineOption,
  oneOf,
  parsed,
  readOptions,
  type SchemaValues,
} from "../../model/option-schema.ts";
import * as read from "../../model/reader.ts";
import { readMegabytes } from "../../model/parse-values.ts";
import {
  anyText,
  flag,
  listOf,
  optional,
  readArguments,
  type Shape,
  textOrNumber,
} from "../../model/read-arguments.ts";
import { accepted, type Checked } from "../../model/checked.ts";
import { type EngineName, engineNames } from "./engine/engine-kind.ts";
import { defaultDistribution, defaultDistributionText, distributions } from "./distributions.ts";

/** Options that only container clusters have. The command line checks them. */
export interface ContainerOptions {
  /** The volumes of every node, in the form of the engine's `--volume`: `/host:/container[:mode]`. */
  readonly volumes: readonly string[];
  /** The limits of every node, in the form of the engine's options, such as `2g` and `1.5`. Absent: no limit. */
  readonly memory?: string;
  readonly cpus?: string;
  /** The user's own image, with systemd and sshd. Absent: an image built for the distribution. */
  readonly nodeImage?: string;
  /** Whether nodes reach each other and nothing else. */
  readonly isOffline?: boolean;
}

/** Docker refuses less. */
const leastMemoryMegabytes = 6;

export const parseVolume = read.matching(/^\/[^:]*:\/[^:]+(?::(?:ro|rw|z|Z)(?:,(?:ro|rw|z|Z))*)?$/);

export const parseCpus = (given: unknown): string | undefined =>
  typeof given === "string" && /^(?:[0-9]+\.)?[0-9]+$/.test(given) && Number(given) > 0
    ? given
    : undefined;

export const containerSchema = {
  engine: {
    isScope: true,
    summary: "The container engine",
    defaultText: "the first that answers: Docker, then Podman",
    choices: engineNames,
    read: oneOf(engineNames),
  },
  customVolumes: {
    flag: "--custom-volume",
    placeholder: "</path/here:/path/on/nodes[:ro]>",
    summary: "File or folder of this machine to mount on all nodes",
    repeatable: true,
    isLocal: true,
    read: parsed(
      parseVolume,
      "is not of the form </absolute/path/here:/path/on/the/nodes>, optionally followed by :ro for read-only",
    ),
  },
  memory: {
    summary: "Memory limit of each node, such as 2g; a number without a unit means megabytes",
    defaultText: "no limit",
    read: parsed(
      (given) =>
        (readMegabytes(given) ?? 0) < leastMemoryMegabytes
          ? undefined
          : given.replace(/\d$/, "$&m"),
      `is not a size of at least ${leastMemoryMegabytes} MB, such as 512m or 2g`,
    ),
  },
  cpus: {
    summary: "CPU limit of each node, such as 1.5",
    defaultText: "no limit",
    read: parsed(parseCpus, "is not a number of CPUs such as 2 or 0.5"),
  },
  nodeImage: {
    summary: "Your own image for the nodes; must contain systemd and sshd",
    defaultText: "an image that is built once for the distribution",
    read: matching(
      /^[a-z0-9][A-Za-z0-9._/:@-]*$/,
      "is not an image such as registry.example.com/node:1",
    ),
  },
  offline: offlineOption,
  linuxDistribution: distributionOption(
    distributions,
    defaultDistribution,
    defaultDistributionText,
  ),
} as const;

type ContainerValues = SchemaValues<typeof containerSchema>;

/** Requires every volume to exist on this machine. */
export async function parseContainerOptions(
  values: Partial<ContainerValues>,
): Promise<Checked<ContainerOptions>> {
  return checkVolumes(containerOptions(values));
}

function containerOptions({
  customVolumes = [],
  memory,
  cpus,
  nodeImage,
  offline = false,
}: Partial<ContainerValues>): ContainerOptions {
  return {
    volumes: customVolumes,
    ...(offline && { isOffline: offline }),
    ...(memory !== undefined && { memory }),
    ...(cpus !== undefined && { cpus }),
    ...(nodeImage !== undefined && { nodeImage }),
  };
}

/** Finds missing volumes, because the engine would create a missing folder as root. */
async function checkVolumes<Given extends Pick<ContainerOptions, "volumes">>(
  given: Given,
): Promise<Checked<Given>> {
  const { access } = await import("node:fs/promises");
  const paths = given.volumes.map((volume) => volume.slice(0, volume.indexOf(":")));
  const found = paths.map((path) =>
    access(path).then(
      () => [],
      () => [`\`customVolumes\`: ${path} does not exist`],
    ),
  );
  const problems = (await Promise.all(found)).flat();
  return problems.length > 0 ? { problems } : { value: given };
}

/** For the library, which can't look at files while it reads its options. */
export async function assertVolumesExist(volumes: readonly string[]): Promise<void> {
  accepted(await checkVolumes({ volumes }));
}

/** Options for the clusters of the library's ContainerBackend. */
export interface ContainerBackendOptions {
  /** The engine: `docker` or `podman`; default: the first that answers, Docker before Podman. */
  readonly engine?: EngineName;
  /**
   * The operating system of the nodes, such as `debian-12`; default: `centos-7` under cgroups 1, `debian-12` under
   * cgroups 2 and for platforms with packages for apt only.
   */
  readonly linuxDistribution?: string;
  /** An image of your own with systemd and sshd, instead of one built for the distribution. */
  readonly nodeImage?: string;
  /** Files of this machine to mount into every node: `/path/here:/path/on/the/nodes`, with `:ro` at the end for read-only mounts. */
  readonly customVolumes?: readonly string[];
  /** Memory that each node may use, such as `2g`; default: no limit. */
  readonly memory?: string;
  /** CPUs that each node may use, such as 1.5; default: no limit. */
  readonly cpus?: number;
  /** Whether nodes reach each other and nothing else; default: `false`. */
  readonly offline?: boolean;
}

const shape: Shape<ContainerBackendOptions> = {
  engine: optional(anyText),
  linuxDistribution: optional(anyText),
  nodeImage: optional(anyText),
  customVolumes: optional(listOf(anyText)),
  memory: optional(textOrNumber),
  cpus: optional(textOrNumber),
  offline: optional(flag),
};

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export function readContainerOptions(given: ContainerBackendOptions): {
  readonly engine: EngineName | undefined;
  readonly distribution: string;
  readonly options: ContainerOptions;
} {
  const parse = (values: Partial<ContainerValues>) => ({ value: containerOptions(values) });
  const { values, options } = readOptions(
    containerSchema,
    { ...readArguments(given, shape) },
    parse,
  );
  return { engine: values.engine, distribution: values.linuxDistribution, options };
}
