import { ClusterError } from "../errors.ts";
import { assertSum } from "../platform/artifact/artifact-download.ts";
import { assertVariant, headLimitMs, readArtifactHead } from "../platform/artifact/artifact-head.ts";
import {
  type Configuration,
  configurationSecrets,
  type SecurityMode,
} from "../platform/configuration/configuration.ts";
import type { InstallPlan } from "../platform/install/install-plan.ts";
import type { InstallationRequest } from "./create/create-request.ts";
import { resolveLicense } from "../platform/configuration/license.ts";
import { accepted } from "../system/checked.ts";
import { freeSpaceProblem } from "../system/files/private-file.ts";
import { urlSecrets } from "../system/mask-url.ts";
import type { Environment, Runtime } from "../system/runtime.ts";
import type { Variant } from "../model/cluster-record.ts";

/**
 * Checks an installation as far as this machine can. Hides the request's secrets; checks the artifact's first kilobytes, its variant and, for a local
 * file, its checksum; and reads the license. Throws `artifact-unreachable`, `artifact-invalid`, `variant-mismatch`, and `bad-usage` for the license.
 */
export async function planInstallation(
  request: InstallationRequest,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<InstallPlan> {
  const { artifact, variant } = request;
  hideSecrets(request, runtime);
  const [head, configuration] = await Promise.all([
    readArtifactHead(artifact, { clock: runtime.clock, limitMs: headLimitMs }, signal),
    withLicense(request, runtime, signal),
    checkSum(request, signal),
  ]);
  assertVariant(head.variant, variant, artifact.shown);
  return { ...request, configuration, layoutHint: head.layout };
}

const workspaceBytes = 2e9;

/** Fails as `machine-not-set-up` if the workspace has no room for an artifact. */
export async function assertWorkspace(folder: string): Promise<void> {
  const problem = await freeSpaceProblem(folder, workspaceBytes);
  if (problem === undefined) return;
  throw new ClusterError("machine-not-set-up", problem, {
    hint: "Set `workspaceDir` or TMPDIR to a folder with 2 GB of free space.",
    facts: { folder },
  });
}

function hideSecrets({ artifact, configuration }: InstallationRequest, { progress }: Runtime): void {
  if (artifact.kind === "url") for (const secret of urlSecrets(artifact.url)) progress.hide(secret);
  for (const secret of configurationSecrets(configuration.values)) progress.hide(secret);
}

async function withLicense(
  { variant, configuration }: InstallationRequest,
  { environment, progress }: Runtime,
  signal: AbortSignal,
): Promise<InstallPlan["configuration"]> {
  if (configuration.kind === "complete") return configuration;
  const { licenseFile, ...added } = configuration;
  const sources = { variant, extraConfiguration: added.values, optionPath: licenseFile, environment };
  const license = accepted(await resolveLicense(sources, signal));
  if (license !== undefined) progress.hide(license.contents);
  return { ...added, licenseKey: license?.contents };
}

/** Other artifacts are checked where they are downloaded. */
async function checkSum({ artifact, sha256 }: InstallationRequest, signal: AbortSignal): Promise<void> {
  if (artifact.kind === "file" && sha256 !== undefined) await assertSum(artifact, sha256, signal);
}

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
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { variant, extraConfig, licenseKey, securityMode } = given;
  const sources = {
    variant: variant ?? "oss",
    extraConfiguration: extraConfig ?? {},
    optionPath: licenseKey,
    environment,
  };
  const license = await resolveLicense(sources, signal);
  return [
    ...(variant === "oss" && securityMode !== undefined
      ? ["`securityMode`: only the enterprise variant has security modes"]
      : []),
    ...(license.problems ?? []),
  ];
}
