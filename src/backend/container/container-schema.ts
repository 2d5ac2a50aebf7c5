import { ClusterError } from "../../errors.ts";
import { checked, oneOf } from "../../model/option-schema.ts";
import type { SchemaValues } from "../../model/option-schema.ts";
import { cpusProblem, imageProblem, memoryProblem, volumeProblem } from "./container-options.ts";
import type { ContainerOptions } from "./container-options.ts";
import { engineNames } from "./engine/engine-kind.ts";

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
