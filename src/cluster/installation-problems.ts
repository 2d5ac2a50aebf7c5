import type { Variant } from "../model/cluster-record.ts";
import type { Configuration, SecurityMode } from "../platform/configuration/configuration.ts";
import { resolveLicense } from "../platform/configuration/license.ts";
import type { Environment } from "../system/environment.ts";

/** What the command line says about an installation, as far as it could be parsed. */
interface GivenInstallation {
  readonly variant?: Variant;
  readonly extraConfig?: Configuration | undefined;
  readonly licenseKey?: string | undefined;
  readonly securityMode?: SecurityMode | undefined;
}

/** Returns all problems with options that depend on each other. It checks the license only if the variant is known. */
export async function installationProblems(
  given: GivenInstallation,
  environment: Environment,
): Promise<readonly string[]> {
  const { variant, extraConfig, licenseKey, securityMode } = given;
  const sources = {
    variant: variant ?? "oss",
    extraConfiguration: extraConfig ?? {},
    optionPath: licenseKey,
    environment,
  };
  const license = await resolveLicense(sources);
  return [
    ...(variant === "oss" && securityMode !== undefined
      ? ["`securityMode`: only the enterprise variant has security modes"]
      : []),
    ...(license.problems ?? []),
  ];
}
