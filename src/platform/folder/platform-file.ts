import type { Role, WebScheme } from "../../model/cluster-record.ts";
import type { Checked } from "../../system/checked.ts";
import type { NodeCondition } from "../layouts/layout.ts";

/** What `platform.yaml` says, with every list present. */
export interface PlatformFacts {
  /** 1 to 40 lower-case letters, digits and hyphens. */
  readonly name: string;
  /** One printable line of 1 to 50 characters. */
  readonly version: string;
  readonly description: string | undefined;
  readonly nodes: Readonly<Record<Role, NodeLimits>>;
  readonly packages: { readonly apt: readonly string[]; readonly dnf: readonly string[] };
  /** TCP ports that users' machines reach, besides 22 and that of the web UI. */
  readonly ports: readonly number[];
  readonly web: PlatformWeb | undefined;
  readonly conditions: readonly NodeCondition[];
  readonly kernelModules: readonly string[];
  readonly logs: { readonly units: readonly string[]; readonly files: readonly string[] };
  /** Absolute paths on the first master. */
  readonly secrets: readonly string[];
}

/** How many nodes of a role a cluster may have. Absent: the product's own default or limit. */
export interface NodeLimits {
  readonly default?: number;
  readonly min?: number;
  readonly max?: number;
}

export interface PlatformWeb {
  readonly port: number;
  readonly path: string;
  readonly scheme: WebScheme;
  /** With https: the absolute path of the certificate authority's PEM file on masters. */
  readonly certificate: string | undefined;
}

/** Parses the text of `platform.yaml`. `path` is the name that problems show. */
export async function parsePlatformFile(text: string, path: string): Promise<Checked<PlatformFacts>> {
  throw new Error(`not yet: ${text.length} ${path}`);
}

/** Parses the JSON in the third line of an artifact, without `# platform: `. */
export function parsePlatformHead(line: string): Checked<PlatformFacts> {
  throw new Error(`not yet: ${line.length}`);
}

/** The facts as the one line of JSON that `parsePlatformHead` reads. */
export function platformHead(facts: PlatformFacts): string {
  throw new Error(`not yet: ${facts.name}`);
}
