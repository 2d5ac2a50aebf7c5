import { ClusterError } from "../../errors.ts";
import type { Variant } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { isMapping } from "../../model/reader.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { outsideLine, plainLine } from "../../system/printable.ts";

export interface ArtifactVersion {
  readonly variant: Variant;
  /** Such as `1.13.0`: free text from the artifact's maker, on one line. */
  readonly version: string;
}

/**
 * Parses the output of `bash artifact --version`: a JSON object that may span several lines and
 * stand between stray lines of the artifact's first run. Throws `artifact-invalid` if there is no
 * such object or the variant is unknown.
 */
export function parseArtifactVersion(stdout: string): ArtifactVersion {
  for (const candidate of stdout.match(/\{[^{}]*\}/g) ?? []) {
    const found = versionIn(candidate);
    if (found !== undefined) return found;
  }
  throw new ClusterError(
    "artifact-invalid",
    `The output of the artifact's --version contains neither a version nor a variant: ${outside(JSON.stringify(plainLine(stdout, 200)))}`,
    {
      hint: "Make sure that it is a release artifact (an installer generator script), or download it again.",
    },
  );
}

/** Parses a variant as artifacts spell it in their `--version`. */
function artifactVariant(text: unknown): Variant | undefined {
  if (text === "none") return "none";
  if (text === "" || text === "oss") return "oss";
  return text === "ee" || text === "enterprise" ? "enterprise" : undefined;
}

/**
 * Whether an enterprise artifact needs a license key: those from 1.11 on do. False if the version
 * isn't a dotted number.
 */
export function licenseNeeded(version: string): boolean {
  const numbers = releaseNumbers(version);
  return numbers !== undefined && compareReleases(numbers, [1, 11]) >= 0;
}

function versionIn(text: string): ArtifactVersion | undefined {
  const found = parseJson(text);
  const version = isMapping(found) ? plainLine(found["version"]) : "";
  if (!isMapping(found) || version === "" || !("variant" in found)) return undefined;
  const variant = artifactVariant(found["variant"]);
  if (variant === undefined) {
    throw new ClusterError(
      "artifact-invalid",
      `The artifact reports the unknown variant ${outsideLine(JSON.stringify(found["variant"]))}.`,
    );
  }
  return { variant, version };
}

/**
 * Returns the numbers of a release such as `1.13.4` or `v2.1.0-beta3`; undefined if it doesn't
 * begin with a dotted number.
 */
export function releaseNumbers(release: string): readonly number[] | undefined {
  const text = /^v?(\d+(?:\.\d+)+)/.exec(release)?.[1];
  return text?.split(".").map(Number);
}

/** Negative if the first release is older, positive if it is newer. Missing numbers count as 0: 2.1 equals 2.1.0. */
export function compareReleases(first: readonly number[], second: readonly number[]): number {
  const length = Math.max(first.length, second.length);
  const differences = Array.from(
    { length },
    (_, index) => (first[index] ?? 0) - (second[index] ?? 0),
  );
  return differences.find((difference) => difference !== 0) ?? 0;
}
