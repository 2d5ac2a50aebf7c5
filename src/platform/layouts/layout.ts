import type { Role, Variant, WebEndpoint } from "../../model/cluster-record.ts";

/** The names and paths that a family of artifacts uses. All differences between families are data in here. */
export interface Layout {
  readonly name: string;
  /** Maps the second line of an artifact to its variant. */
  readonly headVariants: Readonly<Record<string, Variant>>;
  readonly installScript: string;
  readonly installRoles: Readonly<Record<Role, string>>;
  /** The install script's flag that makes it return before the units in `setupUnits` have finished. */
  readonly returnEarlyFlag: string;
  /** systemd units that continue after the install script has exited; if one fails, the installation has failed. */
  readonly setupUnits: readonly string[];
  readonly versionFile: string;
  /** Reads the variant from the version file's JSON object; undefined if it names no known variant. */
  readonly installedVariant: (
    versionFile: Readonly<Record<string, unknown>>,
  ) => Variant | undefined;
  readonly environmentFile: string;
  /** Where `run` works: the first of them that exists. `sync` writes to the first one. */
  readonly testsFolders: readonly [string, ...string[]];
  /** Commands of the node check; the first whose program exists is used. */
  readonly nodeChecks: readonly (readonly string[])[];
  /** A program that runs the node check (`<wrapper> <check…>`) on nodes that have it; undefined if none ever does. */
  readonly nodeCheckWrapper: string | undefined;
  readonly bootstrapConfigFile: string;
  /** Undefined: the platform has no web UI. */
  readonly web: LayoutWeb | undefined;
  /**
   * Files on masters that hold the platform's secrets: whole keys, or mappings whose keys mark the secrets. Everything
   * that a node prints is masked with them.
   */
  readonly secretFiles: readonly string[];
  readonly installedMarker: string;
  /** Ports that the platform or its installer uses on masters; the bootstrap server avoids them. */
  readonly masterPorts: readonly number[];
  /** Ports that users' browsers and tools need, besides 22. */
  readonly publicPorts: readonly number[];
  /** Prefixes of the test environment's variables: always `CLUSTER_`, and others besides. */
  readonly variablePrefixes: readonly string[];
  /** Programs that must be on a node of either variant before the installation. */
  readonly needs: readonly string[];
  /** Packages that nodes need besides, for each package manager. Yum gets those for dnf. */
  readonly packages: { readonly apt: readonly string[]; readonly dnf: readonly string[] };
  readonly kernelModules: readonly string[];
  /** Further programs that only the enterprise variant needs. */
  readonly enterpriseNeeds: readonly string[];
  /** Conditions that a node must meet before the installation, besides its programs. */
  readonly conditions: (facts: NodeFacts) => readonly NodeCondition[];
  /** A shell function `set_up_image`, for prepare-image.sh; empty: nothing to do. */
  readonly imageSetup: string;
  /** A shell function `set_up_container`, for prepare.sh; it may call `restart_docker`. Empty: nothing to do. */
  readonly containerSetup: string;
  /** Programs that replace the node's own while this release's install script runs: name to shell script. */
  readonly installShims: (release: string) => Readonly<Record<string, string>>;
  /** Keys of the base configuration beyond those of all layouts. */
  readonly baseConfiguration: (facts: ReleaseFacts) => Readonly<Record<string, unknown>>;
  /** The format that genconf reads: YAML, or JSON in which a separate key holds the user's configuration. */
  readonly configurationFormat: "yaml" | "json";
  /** Parts that only releases have; undefined for a platform that is a folder. */
  readonly release: ReleaseParts | undefined;
  /** Files on the nodes with facts that are known only when a cluster is created; undefined if there are none. */
  readonly factFiles: FactFiles | undefined;
  /** How to upgrade running nodes; undefined if that is impossible. */
  readonly upgrade: LayoutUpgrade | undefined;
}

/** How an artifact upgrades nodes, one at a time. */
export interface LayoutUpgrade {
  /** The artifact's words that generate the node's script. `installed` is the nodes' version. */
  readonly words: (installed: string) => readonly [option: string, value?: string];
  /** The script: a file in `genconf/serve`, or the rest of a line of the artifact's output, which is its URL. */
  readonly script: { readonly file: string } | { readonly linePrefix: string };
  readonly scriptArguments: (role: Role) => readonly string[];
  /** Whether the script may run again on a node that has the version already, because its check doesn't pass. */
  readonly isRepeatable: boolean;
  /** Whether a node may need other packages than before. */
  readonly preparesNodes: boolean;
}

interface LayoutWeb {
  /** Undefined: the configuration decides whether TLS is on, and port and path are the usual ones. */
  readonly endpoint: WebEndpoint | undefined;
  /** The certificate of the cluster's authority, if TLS is on: a path of the web server, or of a file on masters. */
  readonly authority: { readonly path: string } | { readonly file: string } | undefined;
}

/** The parts of a release for its own tests and its superuser. */
export interface ReleaseParts {
  /** Folder name of the tests' package in a checkout: `packages/<testsPackage>/extra`. */
  readonly testsPackage: string;
  /** The folder that contains `<python>/site-packages/<internalLibrary>`. */
  readonly bootstrapLibraryFolder: string;
  readonly internalLibrary: string;
  readonly loginPath: string;
  /** Further variables of the test environment. */
  readonly testVariables: (
    counts: Readonly<Record<Role, number>>,
  ) => Readonly<Record<string, string>>;
  readonly agentsRegistered: AgentsRegistered;
}

/** Files on nodes with the facts of a platform that is a folder, for other processes. */
interface FactFiles {
  /** One line of JSON: PlatformFacts. */
  readonly facts: string;
  /** Lists files on the first master whose texts are secret, one path a line. */
  readonly secretFiles: string;
  /** List systemd units, and paths, for `logs`, one a line. */
  readonly logUnits: string;
  readonly logFiles: string;
}

/**
 * - `docker`: Docker is running, for genconf and for the platform, and its requirements are met (no swap, no firewalld, a group `nogroup`);
 * - `dns-port-free`: nothing listens on port 53, not even systemd-resolved's stub;
 * - `cgroups-1`: the platform isolates tasks with version 1 of the control groups;
 * - `clock-synchronized`: the kernel's clock is marked as synchronized.
 */
export type NodeCondition = "docker" | "dns-port-free" | "cgroups-1" | "clock-synchronized";

/** The facts on which a node's conditions depend. */
interface NodeFacts {
  /** See ReleaseFacts. */
  readonly nodesKeepTime: boolean;
  /** The configuration that the user provided. */
  readonly configuration: Readonly<Record<string, unknown>>;
}

/** The facts on which a layout's base configuration depends. */
interface ReleaseFacts {
  readonly variant: Variant;
  /** As reported by the artifact's `--version`, such as `1.13.9`. */
  readonly release: string;
  /** Whether nodes synchronize their own clocks. Containers and virtual machines use this machine's clock. */
  readonly nodesKeepTime: boolean;
}

interface AgentsRegistered {
  readonly path: string;
  readonly count: (body: unknown) => number;
  /** Variants whose list a program can get. In the others, only a person can log in. */
  readonly variants: readonly Variant[];
}
