import { ClusterError } from "../../errors.ts";
import { type SchemaValues, checked, oneOf } from "../../model/option-schema.ts";
import { engineNames } from "./engine/engine-kind.ts";

/** Options that only container clusters have. The command line checks them. */
export interface ContainerOptions {
  /** The volumes of every node, in the form of the engine's `--volume`: `/host:/container[:mode]`. */
  readonly volumes: readonly string[];
  /** The limits of every node, in the form of the engine's options, such as `2g` and `1.5`. Absent: no limit. */
  readonly memory?: string;
  readonly cpus?: string;
  /** The user's own image, with systemd and sshd. Absent: an image built for the distribution. */
  readonly nodeImage?: string;
}

/** These functions return what is wrong with an option as one sentence, or `undefined`. */
export const volumeProblem = (given: string): string | undefined =>
  /^\/[^:]*:\/[^:]+(?::(?:ro|rw|z|Z)(?:,(?:ro|rw|z|Z))*)?$/.test(given)
    ? undefined
    : `"${given}" is not of the form </absolute/path/here:/path/on/the/nodes>, optionally followed by :ro for read-only`;

export const memoryProblem = (given: string): string | undefined =>
  /^[1-9][0-9]*[bkmgBKMG]?$/.test(given) ? undefined : `"${given}" is not a size such as 512m or 2g`;

export const cpusProblem = (given: string): string | undefined =>
  /^(?:[0-9]+\.)?[0-9]+$/.test(given) && Number(given) > 0
    ? undefined
    : `"${given}" is not a number of CPUs such as 2 or 0.5`;

export const imageProblem = (given: string): string | undefined =>
  /^[a-z0-9][A-Za-z0-9._/:@-]*$/.test(given)
    ? undefined
    : `"${given}" is not an image such as registry.example.com/node:1`;

/** Where to create clusters and look for them. */
export const containerPlaceSchema = {
  engine: {
    summary: "The container engine",
    defaultText: "the first that answers: Docker, then Podman",
    choices: engineNames,
    read: oneOf(engineNames),
  },
} as const;

/** Options that only clusters of containers have. */
export const containerSchema = {
  customVolumes: {
    placeholder: "</path/here:/path/on/nodes[:ro]>",
    summary: "File or folder of this machine to mount on all nodes",
    repeatable: true,
    read: checked(volumeProblem),
  },
  memory: {
    summary: "Memory limit of each node, such as 2g",
    defaultText: "no limit",
    read: checked(memoryProblem),
  },
  cpus: {
    summary: "CPU limit of each node, such as 1.5",
    defaultText: "no limit",
    read: checked(cpusProblem),
  },
  nodeImage: {
    summary: "Your own image for the nodes; must contain systemd and sshd",
    defaultText: "an image that is built once for the distribution",
    read: checked(imageProblem),
  },
} as const;

export type ContainerValues = SchemaValues<typeof containerSchema>;

export function containerOptions({ customVolumes, memory, cpus, nodeImage }: ContainerValues): ContainerOptions {
  return {
    volumes: customVolumes,
    ...(memory !== undefined && { memory }),
    ...(cpus !== undefined && { cpus }),
    ...(nodeImage !== undefined && { nodeImage }),
  };
}

/** Finds missing volumes on this machine, because the engine would create a missing folder as root. */
export async function volumeProblems(volumes: readonly string[]): Promise<readonly string[]> {
  const { access } = await import("node:fs/promises");
  const paths = volumes.map((volume) => volume.slice(0, volume.indexOf(":")));
  const problems = paths.map((path) =>
    access(path).then(
      () => [],
      () => [`\`customVolumes\`: ${path} does not exist`],
    ),
  );
  return (await Promise.all(problems)).flat();
}

/** For the library, which can't look at files while it reads its options. */
export async function assertVolumesExist(volumes: readonly string[]): Promise<void> {
  const problems = await volumeProblems(volumes);
  if (problems.length > 0) throw new ClusterError("bad-usage", problems.join("; "), { facts: { problems } });
}
