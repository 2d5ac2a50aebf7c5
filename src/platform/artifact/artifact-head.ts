import type { Variant } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/runtime.ts";
import { retry } from "../../system/retry.ts";
import type { ArtifactLocation } from "./artifact-location.ts";
import type { ArtifactStart } from "./artifact-start.ts";
import { readFileStart, readWebStart } from "./artifact-start.ts";
import type { Layout } from "../layout.ts";
import { layouts } from "../layouts/find-layout.ts";
import { ruleOf, waits } from "../../system/waits.ts";

/** Facts from the first kilobytes of an artifact. */
export interface ArtifactHead {
  /** Undefined if the second line doesn't name it; then a node has to run the artifact with `--version`. */
  readonly variant: Variant | undefined;
  readonly layout: Layout["name"] | undefined;
  readonly sizeBytes: number | undefined;
}

export interface HeadReading {
  readonly clock: Clock;
  /** Milliseconds to wait for one answer, and after which no further try begins. */
  readonly limitMs: number;
}

/** Time limit for an artifact's server; a local disk needs none. */
export const headLimitMs = 15_000;

/**
 * Reads the artifact's first 4 KiB, wherever it is. Fails as `artifact-unreachable` (it doesn't exist, or no answer) or `artifact-invalid` (not a
 * script); the message names the masked location.
 */
export async function readArtifactHead(
  location: ArtifactLocation,
  reading: HeadReading,
  signal: AbortSignal,
): Promise<ArtifactHead> {
  if (location.kind === "file") return parseHead(await readFileStart(location.path), location.shown);
  const rule = ruleOf({ ...waits.artifactHead, limitMs: reading.limitMs }, reading.clock);
  const start = await retry((inner) => readWebStart(location, reading.limitMs, inner), rule, signal);
  return parseHead(start, location.shown);
}

/** Fails as `variant-mismatch` if the artifact names another variant than the requested one. An artifact that names none passes. */
export function assertVariant(found: Variant | undefined, asked: Variant, shown: string): void {
  if (found === undefined || found === asked) return;
  throw new ClusterError(
    "variant-mismatch",
    `The artifact ${shown} is the ${found} variant, but \`variant\` is ${asked}.`,
    {
      hint: `Pass \`variant ${found}\`, or use the ${asked} artifact.`,
      facts: { artifact: shown, artifactVariant: found, variant: asked },
    },
  );
}

/** Parses the beginning of an artifact. Fails as `artifact-invalid` if it isn't a script. */
export function parseHead(start: ArtifactStart, shown: string): ArtifactHead {
  const text = new TextDecoder().decode(start.bytes);
  if (!text.startsWith("#!")) {
    throw new ClusterError("artifact-invalid", `${shown} is not a release artifact: ${whatItIs(text)}`, {
      hint: "ARTIFACT_URL must point directly to the installer generator script, without a login or a download page.",
      facts: { artifact: shown },
    });
  }
  const spelling = /^# variant: *(\S+)\s*$/.exec(text.split("\n")[1] ?? "")?.[1] ?? "";
  const layout = layouts.find(({ headVariants }) => Object.hasOwn(headVariants, spelling));
  return { variant: layout?.headVariants[spelling], layout: layout?.name, sizeBytes: start.sizeBytes };
}

function whatItIs(text: string): string {
  if (text === "") return "it is empty.";
  if (/^\s*(<!doctype html|<html)/i.test(text)) return "it is a web page.";
  return "it does not begin like a script (#!).";
}
