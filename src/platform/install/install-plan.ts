import type { NodeTraits, Variant } from "../../model/cluster-record.ts";
import type { ArtifactLocation } from "../artifact/artifact-request.ts";
import type { Configuration, SecurityMode } from "../configuration/configuration.ts";
import type { PlatformFacts } from "../folder/platform-file.ts";
import type { FileToCopy } from "../configuration/configuration-file.ts";
import type { Layout } from "../layouts/layout.ts";

/** An installation, checked on this machine before the first node exists. */
export interface InstallPlan {
  readonly artifact: ArtifactLocation;
  /** Hexadecimal; undefined: not checked. */
  readonly sha256: string | undefined;
  /** The layout according to the artifact's head; undefined if only running the artifact will show it. */
  readonly layout: Layout | undefined;
  /** The facts of a platform that is a folder; undefined for a release. */
  readonly platform: PlatformFacts | undefined;
  readonly variant: Variant;
  /** The source of `config.yaml`. */
  readonly configuration: CompleteConfiguration | AddedConfiguration;
  /**
   * The user's files, with targets relative to `genconf/`. Their `ip-detect` or `ip-detect-public`
   * replaces the backend's.
   */
  readonly genconfFiles: readonly FileToCopy[];
  readonly copyToMaster: readonly FileToCopy[];
  readonly selinuxEnforcing: boolean;
  /** An existing folder on this machine with room for the artifact. */
  readonly workspaceFolder: string;
}

/** The plan, and the facts that only the backend knows. */
export type PlanForNodes = InstallPlan & NodeTraits;

/**
 * Used as it is, except that the secret path of our bootstrap server and missing keys that the
 * layout needs are added.
 */
export interface CompleteConfiguration {
  readonly kind: "complete";
  readonly values: Configuration;
}

/** Merged into the base configuration, which is written once the nodes' addresses are known. */
export interface AddedConfiguration {
  readonly kind: "added";
  readonly values: Configuration;
  /** Overrides the one in `values`. */
  readonly securityMode: SecurityMode | undefined;
  /** Secret. */
  readonly licenseKey: string | undefined;
}
