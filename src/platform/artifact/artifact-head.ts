import type { Variant } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/clock.ts";
import { retry } from "../../system/retry.ts";
import type { ArtifactLocation } from "./artifact-location.ts";
import type { ArtifactStart } from "./artifact-start.ts";
import { readFileStart, readWebStart } from "./artifact-start.ts";
import type { Layout } from "../layout.ts";
import { layouts } from "../layouts/find-layout.ts";

/** What the first kilobytes of an artifact tell. */
export interface ArtifactHead {
  /** Undefined: its second line says none; `--version` must be asked on a node. */
  readonly variant: Variant | undefined;
  readonly layout: Layout["name"] | undefined;
  readonly sizeBytes: number | undefined;
}

export interface HeadReading {
  readonly clock: Clock;
  /** Milliseconds for one answer, and after which no further try is begun. */
  readonly limitMs: number;
}

/** How long an artifact's server is given, and a local disk needs not. */
export const headLimitMs = 15_000;

/**
 * Reads the artifact's first 4 KiB, wherever it is. Fails as `artifact-unreachable` (nothing there, or no answer) or `artifact-invalid`
 * (no script); the message names the masked location.
 */
export async function readArtifactHead(
  location: ArtifactLocation,
  reading: HeadReading,
  signal: AbortSignal,
): Promise<ArtifactHead> {
  if (location.kind === "file") return parseHead(await readFileStart(location.path), location.shown);
  const rule = {
    clock: reading.clock,
    deadlineMs: reading.clock.now() + reading.limitMs,
    pauseMs: (failures: number) => (failures < mostTries ? 500 * failures : Infinity),
  };
  const start = await retry((inner) => readWebStart(location, reading.limitMs, inner), rule, signal);
  return parseHead(start, location.shown);
}

/** Fails as `variant-mismatch` where the artifact says another variant than was asked for; what it doesn't say is not held against it. */
export function assertVariant(found: Variant | undefined, asked: Variant, shown: string): void {
  if (found === undefined || found === asked) return;
  throw new ClusterError(
    "variant-mismatch",
    `The artifact ${shown} is of the variant ${found}, but \`variant\` is ${asked}.`,
    {
      hint: `Use \`variant ${found}\`, or the ${asked} artifact.`,
      facts: { artifact: shown, artifactVariant: found, variant: asked },
    },
  );
}

const mostTries = 4;

/** Reads what an artifact begins with; `artifact-invalid` where it is no script. */
export function parseHead(start: ArtifactStart, shown: string): ArtifactHead {
  const text = new TextDecoder().decode(start.bytes);
  if (!text.startsWith("#!")) {
    throw new ClusterError("artifact-invalid", `${shown} is not a release artifact: ${whatItIs(text)}`, {
      hint: "ARTIFACT_URL must lead straight to the installer generator script, without a login or a download page.",
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
  return "it does not begin as a script does (#!).";
}
