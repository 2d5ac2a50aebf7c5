import { ClusterError } from "../../errors.ts";
import type { ContainerOptions } from "./container-options.ts";
import { cpusProblem, imageProblem, memoryProblem, volumeProblem } from "./container-options.ts";
import { type EngineName, engineNames } from "./engine/engine-kind.ts";
import { defaultDistribution, distributions } from "./launch/containerfiles.ts";

/** What clusters of the library's ContainerBackend are made of. */
export interface ContainerBackendOptions {
  /** The engine: `docker` or `podman`; default: the first that answers, Docker before Podman. */
  readonly engine?: EngineName;
  /** The operating system of the nodes, such as `debian-12`; default: `centos-7` under cgroups 1, `debian-12` under cgroups 2. */
  readonly linuxDistribution?: string;
  /** An image of your own with systemd and sshd, instead of one built for the distribution. */
  readonly nodeImage?: string;
  /** What all nodes have of this machine: `/path/here:/path/on/the/nodes`, with `:ro` at its end where they only read. */
  readonly customVolumes?: readonly string[];
  /** Memory that each node may use, such as `2g`; default: no limit. */
  readonly memory?: string;
  /** CPUs that each node may use, such as 1.5; default: no limit. */
  readonly cpus?: number;
}

/** The options as a creation wants them; `bad-usage` with all that is wrong with them. */
export function readContainerOptions(options: ContainerBackendOptions): {
  readonly engine: EngineName | undefined;
  readonly distribution: string;
  readonly options: ContainerOptions;
} {
  const { engine } = options;
  const { linuxDistribution = defaultDistribution, nodeImage, customVolumes = [], memory } = options;
  const cpus = options.cpus === undefined ? undefined : String(options.cpus);
  const problems = [
    engine === undefined || engineNames.includes(engine)
      ? undefined
      : `No engine "${engine as string}" is known; known: ${engineNames.join(", ")}`,
    linuxDistribution === defaultDistribution || distributions.includes(linuxDistribution)
      ? undefined
      : `No node image is known for the distribution "${linuxDistribution}"; known: ${distributions.join(", ")}`,
    ...customVolumes.map(volumeProblem),
    memory === undefined ? undefined : memoryProblem(memory),
    cpus === undefined ? undefined : cpusProblem(cpus),
    nodeImage === undefined ? undefined : imageProblem(nodeImage),
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new ClusterError("bad-usage", problems.join("; "), { facts: { problems } });
  return {
    engine,
    distribution: linuxDistribution,
    options: {
      volumes: customVolumes,
      ...(memory !== undefined && { memory }),
      ...(cpus !== undefined && { cpus }),
      ...(nodeImage !== undefined && { nodeImage }),
    },
  };
}
