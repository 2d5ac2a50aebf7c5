import type { Role, Variant } from "../model/cluster-record.ts";

/** The names under which a family of artifacts keeps things. All that differs between families, as data. */
export interface Layout {
  readonly name: string;
  /** How the second line of an artifact names its variant. */
  readonly headVariants: Readonly<Record<string, Variant>>;
  readonly installScript: string;
  readonly installRoles: Readonly<Record<Role, string>>;
  readonly returnEarlyFlag: string;
  /** systemd units that go on after the install script's exit; the failure of one is a failed install. */
  readonly setupUnits: readonly string[];
  readonly versionFile: string;
  /** Reads the variant out of the version file's JSON object; undefined where it says none that is known. */
  readonly installedVariant: (versionFile: Readonly<Record<string, unknown>>) => Variant | undefined;
  readonly environmentFile: string;
  readonly testsFolder: string;
  /** Folder name of the tests' package in a checkout: `packages/<testsPackage>/extra`. */
  readonly testsPackage: string;
  /** Where `<python>/site-packages/<internalLibrary>` is found. */
  readonly bootstrapLibraryFolder: string;
  readonly internalLibrary: string;
  /** Commands of the node check; the first whose program exists is used. */
  readonly nodeChecks: readonly (readonly string[])[];
  /** A program that the node check is run through (`<wrapper> <check…>`) on nodes that have it; undefined where none ever has. */
  readonly nodeCheckWrapper: string | undefined;
  readonly bootstrapConfigFile: string;
  readonly caPath: string;
  readonly loginPath: string;
  /** Where a custom CA's private key stands on masters. */
  readonly customCaKeyFile: string;
  /** Files of masters that hold what the platform keeps secret: keys whole, or mappings whose keys say so. All that a node says is masked by them. */
  readonly secretFiles: readonly string[];
  readonly installedMarker: string;
  /** Ports that the platform or its installer uses on masters; the bootstrap server takes none of them. */
  readonly masterPorts: readonly number[];
  /** Ports that people's browsers and tools need, besides 22. */
  readonly publicPorts: readonly number[];
  /** Prefixes of the test environment's variables: `CLUSTER_` always, others beside it. */
  readonly variablePrefixes: readonly string[];
  /** Programs that must be on a node before installing, of either variant. */
  readonly needs: readonly string[];
  /** Programs that only the enterprise variant needs beside them. */
  readonly enterpriseNeeds: readonly string[];
  /** What must hold on a node before installing, beside its programs. */
  readonly conditions: (facts: NodeFacts) => readonly NodeCondition[];
  /**
   * Shell lines that run on nodes that are containers, as root, before Docker starts; empty: none. They may call `now` and `fail`, and
   * `restart_docker` where they changed how Docker runs.
   */
  readonly containerSetup: string;
  /** Programs that stand in front of the node's own while the install script of this release runs: name to shell script. */
  readonly installShims: (release: string) => Readonly<Record<string, string>>;
  /** What the base configuration holds beside the keys of all layouts. */
  readonly baseConfiguration: (facts: ReleaseFacts) => Readonly<Record<string, unknown>>;
  /** Further variables of the test environment. */
  readonly testVariables: (counts: Readonly<Record<Role, number>>) => Readonly<Record<string, string>>;
  readonly agentsRegistered: AgentsRegistered;
}

/**
 * - `docker`: a running Docker, for genconf and for the platform, and what goes with it (no swap, no firewalld, a group `nogroup`);
 * - `dns-port-free`: no socket on port 53, systemd-resolved's stub included;
 * - `cgroups-1`: the platform isolates with version 1 of the control groups;
 * - `clock-synchronized`: the kernel's clock is marked as synchronized.
 */
export type NodeCondition = "docker" | "dns-port-free" | "cgroups-1" | "clock-synchronized";

/** What the conditions of a node depend on. */
interface NodeFacts {
  /** See ReleaseFacts. */
  readonly nodesKeepTime: boolean;
  /** What the user gave of the configuration. */
  readonly configuration: Readonly<Record<string, unknown>>;
}

/** What the base configuration of a layout depends on. */
interface ReleaseFacts {
  readonly variant: Variant;
  /** As the artifact's `--version` has it, such as `1.13.9`. */
  readonly release: string;
  /** Whether the nodes keep the time by themselves: false for containers and virtual machines, which have the clock of this machine. */
  readonly nodesKeepTime: boolean;
}

/** How a master tells which agents have registered. */
interface AgentsRegistered {
  readonly path: string;
  /** Reads the answer's body. */
  readonly count: (body: unknown) => number;
  /** Variants for which it can be asked without a person. */
  readonly variants: readonly Variant[];
}
