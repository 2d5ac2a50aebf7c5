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
  /** Programs that must be on a node before installing. */
  readonly needs: readonly string[];
  /** Whether nodes need a running Docker, for the artifact itself (genconf, even its version) and for the platform. */
  readonly needsDocker: boolean;
  readonly agentsRegistered: AgentsRegistered;
}

/** How a master tells which agents have registered. */
interface AgentsRegistered {
  readonly path: string;
  /** Reads the answer's body. */
  readonly count: (body: unknown) => number;
  /** Variants for which it can be asked without a person. */
  readonly variants: readonly Variant[];
}
