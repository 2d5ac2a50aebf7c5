import type { Variant } from "../../model/cluster-record.ts";
import { type Checked, problem } from "../../system/checked.ts";
import { readText, unreadableReason } from "../../system/files/read-text.ts";
import type { Environment } from "../../system/runtime.ts";
import type { Configuration } from "./configuration.ts";

export interface License {
  /** Secret. */
  readonly contents: string;
  readonly source: "`extraConfig`" | "`licenseKey`" | "CLUSTER_LICENSE_KEY_PATH";
}

export interface LicenseSources {
  readonly variant: Variant;
  readonly extraConfiguration: Configuration;
  /** The value of the command-line option. */
  readonly optionPath: string | undefined;
  readonly environment: Environment;
}

/**
 * Finds the license in the documented order: the first source that is present wins, and the others stay unread. For other variants it reads
 * none. Undefined: no source is present. A source that is present but unreadable or empty is a problem; it is not skipped.
 */
export async function resolveLicense(
  sources: LicenseSources,
  signal: AbortSignal,
): Promise<Checked<License | undefined>> {
  if (sources.variant !== "enterprise") return { value: undefined };
  const contents = sources.extraConfiguration["license_key_contents"];
  if (contents !== undefined) return fromConfiguration(contents);
  if (sources.optionPath !== undefined) return fromFile(sources.optionPath, "`licenseKey`", signal);
  const variable = sources.environment["CLUSTER_LICENSE_KEY_PATH"];
  // CI systems express a missing value as an empty variable.
  if (variable === undefined || variable === "") return { value: undefined };
  return fromFile(variable, "CLUSTER_LICENSE_KEY_PATH", signal);
}

function fromConfiguration(contents: unknown): Checked<License> {
  if (typeof contents === "string") return { value: { contents, source: "`extraConfig`" } };
  return problem("`extraConfig`: license_key_contents must be text.");
}

/** A license is a few lines. With a longer one, commands that mask the cluster's secrets would refuse to work; see cluster-secrets.ts. */
const mostLicenseBytes = 16 * 1024;

async function fromFile(path: string, source: License["source"], signal: AbortSignal): Promise<Checked<License>> {
  try {
    const contents = (await readText(path, mostLicenseBytes, signal)).replace(/\r?\n$/, "");
    return contents === "" ? problem(`${source}: the license file ${path} is empty.`) : { value: { contents, source } };
  } catch (error) {
    signal.throwIfAborted();
    return problem(`${source}: cannot read the license file ${path}: ${unreadableReason(error)}.`);
  }
}
