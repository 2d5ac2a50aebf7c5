import { optionName } from "../../references.ts";
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
import { accepted, type Checked } from "../../model/checked.ts";
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
    summary: "File or folder of this computer to mount on all nodes",
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

/** Requires every volume to exist on this machine. */
export const parseContainerOptions = async (
  values: Partial<ContainerValues>,
): Promise<Checked<ContainerOptions>> => checkVolumes(containerOptions(values));

const containerOptions = (values: Partial<ContainerValues>): ContainerOptions => ({
  ...withDefaults(containerSchema, values),
  limits: limitsOf(values),
});

/** Finds missing volumes, because the engine would create a missing folder as root. */
async function checkVolumes<Given extends Pick<ContainerOptions, "customVolumes">>(
  given: Given,
): Promise<Checked<Given>> {
  const [{ access }, { unreachable }] = await Promise.all([
    import("node:fs/promises"),
    import("../../system/files/private-file.ts"),
  ]);
  const paths = given.customVolumes.map((volume) => volume.slice(0, volume.indexOf(":")));
  const found = paths.map((path) =>
    access(path).then(
      () => [],
      (error: unknown) => [`${optionName("customVolumes")}: ${path} ${unreachable(error)}`],
    ),
  );
  const problems = (await Promise.all(found)).flat();
  return problems.length > 0 ? { problems } : { value: given };
}

/** For the library, which can't look at files while it reads its options. */
export async function assertVolumesExist(customVolumes: readonly string[]): Promise<void> {
  accepted(await checkVolumes({ customVolumes }));
}

/** Options for the clusters of the library's ContainerBackend. */
export type ContainerBackendOptions = LibraryOptions<typeof containerSchema>;

/** Reads the options into the form that a creation needs. Throws `bad-usage` with every problem found. */
export const readContainerOptions = (given: ContainerBackendOptions) =>
  readLibraryOptions(containerSchema, given, (values) => ({ value: containerOptions(values) }));
