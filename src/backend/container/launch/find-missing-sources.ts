import { existsSync } from "node:fs";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { optionName } from "../../../references.ts";
import { badUsage } from "../../../model/checked.ts";
import { lacksSource } from "../engine/engine-errors.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { Progress } from "../../../system/runtime.ts";
import type { Engine } from "../engine/engine.ts";
import { lookBriefly } from "../engine/run-briefly.ts";

/** What to look for, and an image of nodes with which the engine can look. */
interface Look {
  readonly image: string;
  /** As in `customVolumes` of ContainerOptions. */
  readonly customVolumes: readonly string[];
}

/** Throws `bad-usage` for each that `findMissingSources` finds. */
export async function assertVolumesExist(
  engine: Engine,
  look: Look,
  signal: AbortSignal,
): Promise<void> {
  const missing = await findMissingSources(engine, look, signal);
  if (missing.length === 0) return;
  const why = `does not exist on the computer that ${engine.kind.title} runs on`;
  throw badUsage(
    missing.map((source) => `${optionName("customVolumes")}: ${outside(source)} ${why}`),
  );
}

/**
 * Warns of what this computer lacks, where the engine seems to run on it and can't look before its
 * image is there, which takes minutes.
 */
export function warnOfMissingSources(
  customVolumes: Look["customVolumes"],
  { title }: Pick<Engine["kind"], "title">,
  progress: Progress,
): void {
  for (const source of customVolumes.map(sourceOf).filter((path) => !existsSync(path)))
    progress.warn(
      `${optionName("customVolumes")}: this computer has no ${outside(source)}; if ${title} finds none either, the creation fails when its image is there`,
    );
}

/**
 * Returns the files and folders of volumes that aren't there. The engine looks itself, because it
 * may run on another computer, or see other files of this one. For a node, it would create a missing
 * folder as root.
 */
export async function findMissingSources(
  engine: Engine,
  { image, customVolumes }: Look,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const sources = [...new Set(customVolumes.map(sourceOf))];
  if (sources.length === 0 || (await exist(engine, image, sources, signal))) return [];
  const isThere = async (source: string) => exist(engine, image, [source], signal);
  const found = await mapConcurrently(sources, atOnce, isThere, signal);
  return sources.filter((_, place) => found[place] !== true);
}

const atOnce = 6;

const sourceOf = (volume: string): string => volume.slice(0, volume.indexOf(":"));

async function exist(
  engine: Engine,
  image: string,
  sources: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  const options = sources.map((source, place) => mountWord(source, `/cluster-e2e-volume-${place}`));
  const argv = ["/bin/sh", "-c", "echo mounted"] as const;
  try {
    await lookBriefly(engine, { image, options, argv }, signal);
    return true;
  } catch (error) {
    // An engine looks for them first. What else it refuses, such as limits that only other rights allow, is no matter here.
    if (error instanceof ClusterError && error.id === "engine-failed") return !lacksSource(error);
    throw error;
  }
}

/** Unlike `--volume`, it never creates what is missing. Its value is a line of CSV. */
function mountWord(source: string, target: string): string {
  const field = `source=${source}`;
  const quoted = /[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
  return `--mount=type=bind,${quoted},target=${target},readonly`;
}
