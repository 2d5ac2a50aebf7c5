export const engineNames = ["docker", "podman"] as const;
export type EngineName = (typeof engineNames)[number];

/** All in which the engines differ, as data. What they agree on, most of their command lines, is written once, elsewhere. */
export interface EngineKind {
  /** The program's name as well. */
  readonly name: EngineName;
  /** For people. */
  readonly title: string;
  /** The first version that can serve. */
  readonly leastVersion: readonly [major: number, minor: number];
  /** The cheapest question that tells whether it answers and can serve. */
  readonly probe: readonly string[];
  /** Whether what the program answered to it is this engine's: a `docker` may be Podman's or containerd's, or speak to one. */
  isOwnAnswer(answer: object): boolean;
  /** What `info` says. */
  readFacts(information: unknown): EngineFacts;
  /** One of those that `network inspect` describes; nothing in it is judged yet. */
  readNetwork(description: unknown): DescribedNetwork;
  /** Of every container with a system of its own. */
  readonly systemWords: readonly string[];
  /** Limits that containers can be given, the best first: which of them may be given is found by trying. */
  readonly limits: readonly (readonly string[])[];
  /** Asks for something that is another one each time the engine is started, where there is such a thing. */
  readonly runWords: readonly string[] | undefined;
  /** Asks for the address that it is spoken to at, where what it tells of itself doesn't say where it is. */
  readonly addressWords: readonly string[] | undefined;
  /** Removes a container at once, running or not. */
  readonly removeWords: readonly string[];
  readonly advice: Readonly<Record<"install" | "forbidden" | "silent" | "rootless" | "storage", string>>;
}

/** Where it runs, as far as it says so itself. */
export type EngineLocation = "here" | "virtual-machine" | "elsewhere" | "unknown";

/** What the engine tells of itself. */
export interface EngineFacts {
  readonly version: string;
  readonly operatingSystem: string;
  readonly location: EngineLocation;
  readonly cgroupVersion: "1" | "2";
  readonly isRootless: boolean;
  readonly hasAppArmor: boolean;
  readonly hasSelinux: boolean;
  readonly storageDriver: string;
  /** Where it keeps images and containers, on the machine that it runs on. */
  readonly rootFolder: string;
  readonly memoryBytes: number;
}

/** How this machine gets to the nodes: at their own addresses, or at ports of its loopback interface. */
export type Reach = "direct" | "published";

/** As `network inspect` has it, whatever the engine calls the parts. */
export interface DescribedNetwork {
  readonly id: unknown;
  readonly name: unknown;
  readonly labels: unknown;
}
