export const engineNames = ["docker", "podman"] as const;
export type EngineName = (typeof engineNames)[number];

/** All differences between the engines, as data. Most of their command lines are the same. */
export interface EngineKind {
  /** The engine's name, which is also the program's. */
  readonly name: EngineName;
  /** The name shown to people. */
  readonly title: string;
  readonly leastVersion: readonly [major: number, minor: number];
  /** The cheapest command that shows whether the engine answers and is usable. */
  readonly probe: readonly string[];
  /** Whether the answer to the probe comes from this engine. A `docker` may belong to Podman or containerd. */
  isOwnAnswer(answer: object): boolean;
  readFacts(information: unknown): EngineFacts;
  /** Reads one network from the output of `network inspect`, without judging any of it yet. */
  readNetwork(description: unknown): DescribedNetwork;
  /** Options for every container that runs a system of its own. */
  readonly systemWords: readonly string[];
  /**
   * Options for what a container's console shows: the engine keeps it in files of this driver,
   * whatever its configuration says, and at most 4 MB of it, since a node writes to its console
   * without limit. Docker keeps at least the newest 2 MB; Podman begins again after 4 MB.
   */
  readonly consoleWords: readonly string[];
  /** Limits for containers, the best first. Only trying shows which of them the engine accepts. */
  readonly limits: readonly (readonly string[])[];
  /**
   * The user's settings of the program that would change what our own commands mean: the commands
   * that may see each variable, or the value that it gets instead.
   */
  readonly variables: Readonly<Record<string, readonly string[] | string>>;
  /** Lets the engine start a container again that ends with another status than 0 by itself; undefined if it can't. */
  readonly restartWords: readonly string[] | undefined;
  /** Options that remove a container at once, running or not. */
  readonly removeWords: readonly string[];
  /** An option for a volume that goes with its container, and has the label if the engine can. */
  ownVolumeWord(path: string, label: string): string;
  /** Takes this name, and no other, from an image, which containers may still use. */
  untagWords(name: string): readonly string[];
  /** A command that writes images as one archive to its output, before their names. */
  readonly saveWords: readonly string[];
  /**
   * Where the program keeps temporary files unless TMPDIR is set, if it leaves some behind: after
   * each `cp` the archive, which may hold keys, and after it was killed the whole image. It also
   * writes what it commits there first.
   */
  readonly litteredFolder: string | undefined;
  /** Whether an archive of images may lack layers that the engine has. */
  knowsLayers(facts: Pick<EngineFacts, "storageDriver">): boolean;
  /**
   * The network that the engine has by itself, whether it makes it again, with another id, each time
   * it starts, and the option of networks for the size of packets.
   */
  readonly defaultNetwork: {
    readonly name: string;
    readonly isRenewed: boolean;
    readonly mtuOption: string;
  };
  /**
   * Options for a network whose nodes reach nothing else, as far as the engine can see to that; see
   * `start-system.sh`.
   */
  readonly offlineWords: readonly string[];
  /** Whether a container can ask for an address in a network whose addresses the engine chose. */
  readonly grantsAddresses: boolean;
  readonly advice: Readonly<
    Record<
      "install" | "forbidden" | "silent" | "rootless" | "session" | "users" | "storage",
      string
    >
  >;
}

/** Where the engine runs, as far as it says so itself. `service`: behind a socket, which may lead anywhere. */
export type EngineLocation = "here" | "virtual-machine" | "elsewhere" | "service" | "unknown";

export interface EngineFacts {
  readonly version: string;
  readonly operatingSystem: string;
  /** The name that images use, such as `amd64`. */
  readonly architecture: string;
  readonly location: EngineLocation;
  readonly cgroupVersion: "1" | "2";
  /** What makes the containers' control groups, such as `systemd`; empty: not said. */
  readonly cgroupManager: string;
  readonly isRootless: boolean;
  readonly hasAppArmor: boolean;
  readonly hasSelinux: boolean;
  /**
   * Whether root in a container is another user of the engine's computer, by `userns-remap`.
   * Rootless engines don't count.
   */
  readonly hasRemappedUsers: boolean;
  /** Whether images are containerd's, which are not in the engine's folder. */
  readonly hasContainerdStore: boolean;
  readonly storageDriver: string;
  /** Whether networks get one of Docker's usual ranges, since its configuration names no others. */
  readonly hasUsualRanges: boolean;
  /** Where the engine keeps images and containers, on the machine that it runs on. */
  readonly rootFolder: string;
  readonly memoryBytes: number;
  /** The options for limits that have no effect, because no control group of the engine has their controller. */
  readonly idleLimits: readonly ("memory" | "cpus")[];
  /** How many users a container can have; undefined: not said, as by Docker, or all. */
  readonly userCount: number | undefined;
}

/**
 * How this program reaches the nodes: at their own addresses, or through the engine, which leads to
 * them from everywhere.
 */
export type Reach = "direct" | "engine";

/** A network from `network inspect`, with the same field names for every engine. */
export interface DescribedNetwork {
  readonly id: unknown;
  readonly name: unknown;
  readonly labels: unknown;
  /** A list of ranges such as `172.18.0.0/16`. */
  readonly ranges?: unknown;
  readonly options?: Readonly<Record<string, unknown>> | undefined;
  /** The interface of the network on the engine's computer. */
  readonly bridge?: unknown;
}
