import { distributionOption, readOptions } from "../../model/option-schema.ts";
import { type Shape, anyText, listOf, optional, readArguments, textOrNumber } from "../../model/read-arguments.ts";
import { defaultDistribution, distributions } from "./distributions.ts";
import type { EngineName } from "./engine/engine-kind.ts";
import { type ContainerOptions, containerOptions, containerPlaceSchema, containerSchema } from "./options.ts";

/** Options for the clusters of the library's ContainerBackend. */
export interface ContainerBackendOptions {
  /** The engine: `docker` or `podman`; default: the first that answers, Docker before Podman. */
  readonly engine?: EngineName;
  /**
   * The operating system of the nodes, such as `debian-12`; default: `centos-7` under cgroups 1, `debian-12` under
   * cgroups 2.
   */
  readonly linuxDistribution?: string;
  /** An image of your own with systemd and sshd, instead of one built for the distribution. */
  readonly nodeImage?: string;
  /**
   * Files of this machine to mount into every node: `/path/here:/path/on/the/nodes`, with `:ro` at the end for
   * read-only mounts.
   */
  readonly customVolumes?: readonly string[];
  /** Memory that each node may use, such as `2g`; default: no limit. */
  readonly memory?: string;
  /** CPUs that each node may use, such as 1.5; default: no limit. */
  readonly cpus?: number;
}

const shape: Shape<ContainerBackendOptions> = {
  engine: optional(anyText),
  linuxDistribution: optional(anyText),
  nodeImage: optional(anyText),
  customVolumes: optional(listOf(anyText)),
  memory: optional(textOrNumber),
  cpus: optional(textOrNumber),
};

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export function readContainerOptions(given: ContainerBackendOptions): {
  readonly engine: EngineName | undefined;
  readonly distribution: string;
  readonly options: ContainerOptions;
} {
  const values = readOptions(librarySchema, { ...readArguments(given, shape) }, () => []);
  return { engine: values.engine, distribution: values.linuxDistribution, options: containerOptions(values) };
}

const librarySchema = {
  ...containerPlaceSchema,
  ...containerSchema,
  linuxDistribution: distributionOption(distributions, defaultDistribution),
} as const;
