import { ClusterError } from "../errors.ts";
import { optionName } from "../references.ts";
import { assertSum } from "../platform/artifact/artifact-download.ts";
import {
  type ArtifactHead,
  assertVariant,
  headLimitMs,
  parseHead,
  readArtifactHead,
  readFileStart,
} from "../platform/artifact/artifact-head.ts";
import { type ArtifactLocation, checksumProblem } from "../platform/artifact/artifact-request.ts";
import {
  type Configuration,
  configurationSecrets,
  type SecurityMode,
} from "../platform/configuration/configuration.ts";
import type { InstallPlan } from "../platform/install/install-plan.ts";
import type { InstallationRequest } from "./create/create-request.ts";
import { resolveLicense } from "../platform/configuration/configuration-file.ts";
import { accepted, badUsage, problem } from "../model/checked.ts";
import { freeSpaceProblem } from "../system/files/private-file.ts";
import { urlSecrets } from "../system/mask-url.ts";
import type { Environment, Work } from "../system/runtime.ts";
import { slowNote } from "../system/time-limit.ts";
import { type Variant, variants } from "../model/cluster-record.ts";

/**
 * Checks an installation as far as this machine can. Hides the request's secrets; checks the
 * artifact's first kilobytes, its variant and, for a local file, its checksum; and reads the
 * license. Throws `artifact-unreachable`, `artifact-invalid`, `variant-mismatch`, and `bad-usage`
 * for the license.
 */
export async function planInstallation(
  work: Work,
  request: InstallationRequest,
): Promise<InstallPlan> {
  for (const secret of configurationSecrets(request.configuration.values))
    work.progress.hide(secret);
  const head = await readCheckedHead(work, request);
  const variant = variantOf(request, head);
  const configuration = await withLicense(work, { ...request, variant });
  const artifact = checkedArtifact(request.artifact, head);
  return {
    ...request,
    artifact,
    variant,
    configuration,
    layout: head.layout,
    platform: head.platform,
  };
}

/** The artifact whose head was read: if it is a file, no other file that comes to stand in its place. */
export const checkedArtifact = (
  artifact: ArtifactLocation,
  { file }: Pick<ArtifactHead, "file">,
): ArtifactLocation =>
  artifact.kind === "file" && file !== undefined ? { ...artifact, file } : artifact;

/**
 * Hides the secrets of the artifact's URL, reads the artifact's first kilobytes, and checks a local
 * file's sum. Throws `bad-usage` if nothing protects a download. Other artifacts are checked where
 * they are downloaded.
 */
export async function readCheckedHead(
  { clock, progress, signal }: Work,
  { artifact, sha256 }: Pick<InstallationRequest, "artifact" | "sha256">,
): Promise<ArtifactHead> {
  if (artifact.kind === "url") for (const secret of urlSecrets(artifact.url)) progress.hide(secret);
  const lack = checksumProblem(artifact, sha256);
  if (lack !== undefined) throw badUsage([lack]);
  using _slow = slowNote(() => progress.note(`Still reading ${artifact.shown}.`));
  const head = await readArtifactHead(artifact, { clock, limitMs: headLimitMs }, signal);
  if (head.file !== undefined && sha256 !== undefined)
    await assertSum({ file: head.file, shown: artifact.shown }, sha256, signal);
  return head;
}

/** Throws `bad-usage` for options that the artifact's platform lacks, and if it has variants but none was chosen. */
function variantOf(
  { artifact, variant, configuration }: InstallationRequest,
  head: ArtifactHead,
): Variant {
  if (head.variant === "none") {
    const { licenseFile, securityMode } = configuration.kind === "added" ? configuration : {};
    const given = {
      variant: variant === "none" ? undefined : variant,
      licenseKey: licenseFile,
      securityMode,
    };
    const problems = releaseOnlyProblems(given, artifact.shown);
    return accepted(problems.length > 0 ? { problems } : { value: "none" as const });
  }
  if (variant === undefined) return accepted(problem(variantRequired));
  assertVariant(head.variant, variant, artifact.shown);
  return variant;
}

const variantRequired = `${optionName("variant")}: required (${variants.join(", ")})`;

/** Returns a problem for each of these options that was given, because only releases support them. */
const releaseOnlyProblems = (
  given: Readonly<Record<string, unknown>>,
  shown: string,
): readonly string[] =>
  Object.entries(given).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [`${optionName(name)}: only releases of the platform have it, but not ${shown}`],
  );

/** Fails as `machine-not-set-up` if the workspace has no room for what is downloaded or packed there. */
export async function assertWorkspace(artifact: ArtifactLocation, folder: string): Promise<void> {
  const lack = await freeSpaceProblem(folder, workspaceBytes(artifact));
  if (lack === undefined) return;
  throw new ClusterError("machine-not-set-up", lack, {
    hint: `Set ${optionName("workspaceDir")} or TMPDIR to a folder with enough free space.`,
    facts: { folder },
  });
}

/** A folder is packed, and what is compressed already gets no smaller. */
export function workspaceBytes(artifact: ArtifactLocation): number {
  if (artifact.kind === "url") return 2e9;
  if (artifact.kind === "file") return 0;
  return 1e8 + artifact.platform.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

async function withLicense(
  { environment, progress, signal }: Work,
  {
    variant,
    configuration,
  }: Pick<InstallationRequest, "configuration"> & { readonly variant: Variant },
): Promise<InstallPlan["configuration"]> {
  if (configuration.kind === "complete") return configuration;
  const { licenseFile, ...added } = configuration;
  const sources = {
    variant,
    extraConfiguration: added.values,
    optionPath: licenseFile,
    environment,
  };
  const license = accepted(await resolveLicense(sources, signal));
  if (license !== undefined) progress.hide(license.contents);
  return { ...added, licenseKey: license?.contents };
}

interface GivenInstallation {
  readonly artifact?: ArtifactLocation;
  readonly artifactSha256?: string | undefined;
  readonly superuserPassword?: string | undefined;
  readonly variant?: Variant | undefined;
  /** Whether the given variant was invalid. */
  readonly hasWrongVariant?: boolean;
  readonly extraConfig?: Configuration | undefined;
  readonly licenseKey?: string | undefined;
  readonly securityMode?: SecurityMode | undefined;
}

/**
 * Whether the variant must be chosen. For an artifact from the network, or one that can't be read,
 * that is checked later.
 */
async function needsVariant(artifact: ArtifactLocation | undefined): Promise<boolean> {
  if (artifact?.kind !== "file") return false;
  try {
    return parseHead(await readFileStart(artifact.path), artifact.shown).variant !== "none";
  } catch {
    return false;
  }
}

/** Returns all problems with options that depend on each other. It checks the license only if the variant is known. */
export async function installationProblems(
  given: GivenInstallation,
  environment: Environment,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const {
    artifact,
    variant,
    extraConfig,
    licenseKey,
    securityMode,
    artifactSha256,
    superuserPassword,
  } = given;
  if (artifact?.kind === "folder") {
    const releaseOnly = { variant, artifactSha256, licenseKey, securityMode, superuserPassword };
    return releaseOnlyProblems(releaseOnly, artifact.shown);
  }
  const sources = {
    variant: variant ?? "none",
    extraConfiguration: extraConfig ?? {},
    optionPath: licenseKey,
    environment,
  };
  const license = await resolveLicense(sources, signal);
  const lack = artifact && checksumProblem(artifact, artifactSha256);
  return [
    ...(lack === undefined ? [] : [lack]),
    ...(variant === undefined && given.hasWrongVariant !== true && (await needsVariant(artifact))
      ? [variantRequired]
      : []),
    ...(variant === "oss" && securityMode !== undefined
      ? [`${optionName("securityMode")}: only the enterprise variant has security modes`]
      : []),
    ...(license.problems ?? []),
  ];
}
