import type { Variant } from "../model/cluster-record.ts";
import type { ArtifactLocation } from "./artifact/artifact-location.ts";
import type { Configuration, SecurityMode } from "./configuration/configuration.ts";
import type { FileToCopy } from "./configuration/genconf-folder.ts";
import type { Layout } from "./layout.ts";

/** All that is asked of an installation, checked on this machine before the first node exists. */
export interface InstallPlan {
  readonly artifact: ArtifactLocation;
  /** Hexadecimal; undefined: not compared. */
  readonly sha256: string | undefined;
  /** What the artifact's head tells; undefined: it tells nothing, and the artifact itself is asked on the first master. */
  readonly layoutHint: Layout["name"] | undefined;
  readonly variant: Variant;
  readonly configuration: PlannedConfiguration;
  /** The user's own, their targets relative to `genconf/`. An `ip-detect` or `ip-detect-public` among them wins over the backend's. */
  readonly genconfFiles: readonly FileToCopy[];
  readonly copyToMaster: readonly FileToCopy[];
  readonly selinuxEnforcing: boolean;
  /** The text of the script that prints a node's private address. */
  readonly ipDetect: string;
  readonly ipDetectPublic: string | undefined;
  /** Whether the nodes keep the time by themselves; see ReleaseFacts. */
  readonly nodesKeepTime: boolean;
  /** For those whose nodes have cgroups 2 where the platform needs version 1: a sentence, such as which distributions fit. */
  readonly cgroups1Advice: string;
  /** An existing folder of this machine with room for the artifact. */
  readonly workspaceFolder: string;
}

/** What becomes `config.yaml`. */
type PlannedConfiguration = CompleteConfiguration | AddedConfiguration;

/** Used as it is: nothing is added to it but the secret path of our own bootstrap server. */
export interface CompleteConfiguration {
  readonly kind: "complete";
  readonly values: Configuration;
}

/** Added to the base configuration, which is written when the nodes' addresses are known. */
export interface AddedConfiguration {
  readonly kind: "added";
  readonly values: Configuration;
  /** Wins over the one in `values`. */
  readonly securityMode: SecurityMode | undefined;
  /** Secret. */
  readonly licenseKey: string | undefined;
}
