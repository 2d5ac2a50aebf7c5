import type { Variant } from "../model/cluster-record.ts";
import type { Configuration, SecurityMode } from "../platform/configuration/configuration.ts";
import { resolveLicense } from "../platform/configuration/license.ts";
import type { Environment } from "../system/environment.ts";

/** What a command line says of an installation, as far as it could be read. */
interface GivenInstallation {
  readonly variant?: Variant;
  readonly extraConfig?: Configuration | undefined;
  readonly licenseKey?: string | undefined;
  readonly securityMode?: SecurityMode | undefined;
}

/** Everything wrong with options that depend on each other. Without a known variant no license is looked at. */
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
