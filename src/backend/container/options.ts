import {
  distributionOption,
  offlineOption,
  readLibraryOptions,
  withDefaults,
  type LibraryOptions,
  type SchemaValues,
} from "../../model/option-schema.ts";
import { type Limits, limitOptions, limitsOf } from "./limits.ts";
import * as read from "../../model/reader.ts";
import { wordOf } from "../../model/rule.ts";
import { engineNames } from "./engine/engine-kind.ts";
import {
  defaultDistribution,
  defaultDistributionText,
  distributions,
  selinuxProblem,
} from "./distributions.ts";

export const parseVolume = read.matching(/^\/[^:]*:\/[^:]+(?::(?:ro|rw|z|Z)(?:,(?:ro|rw|z|Z))*)?$/);

export const containerSchema = {
  engine: {
    isScope: true,
    summary: "The container engine",
    defaultText: "the first that answers: Docker, then Podman",
    ...wordOf(engineNames),
  },
  customVolumes: {
    flag: "--custom-volume",
    placeholder: "</path/here:/path/on/nodes[:ro]>",
    summary: "File or folder of the engine's computer to mount on all nodes",
    repeatable: true,
    isLocal: true,
    read: parseVolume,
    what: "of the form </absolute/path/here:/path/on/the/nodes>, optionally followed by :ro for read-only",
  },
  ...limitOptions,
  nodeImage: {
    summary: "Your own image for the nodes; must contain systemd and sshd",
    defaultText: "an image that is built once for the distribution",
    read: read.matching(/^[a-z0-9][A-Za-z0-9._/:@-]*$/),
    what: "an image such as registry.example.com/node:1",
  },
  offline: offlineOption,
  linuxDistribution: distributionOption(
    distributions,
    defaultDistribution,
    defaultDistributionText,
    selinuxProblem,
  ),
} as const;

type ContainerValues = SchemaValues<typeof containerSchema>;

/** Options of container clusters, with the limits in one record. The command line checks them. */
export type ContainerOptions = Omit<ContainerValues, keyof Limits> & { readonly limits: Limits };

/** Whether the volumes exist is for the engine to say. */
export const containerOptions = (values: Partial<ContainerValues>): ContainerOptions => ({
  ...withDefaults(containerSchema, values),
  limits: limitsOf(values),
});

/** Options for the clusters of the library's ContainerBackend. */
export type ContainerBackendOptions = LibraryOptions<typeof containerSchema>;

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export const readContainerOptions = (given: ContainerBackendOptions) =>
  readLibraryOptions(containerSchema, given, (values) => ({ value: containerOptions(values) }));
