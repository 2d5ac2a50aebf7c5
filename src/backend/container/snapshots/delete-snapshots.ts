import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { Clock } from "../../../system/runtime.ts";
import { poll } from "../../../system/poll.ts";
import type { Engine } from "../engine/engine.ts";
import { means } from "../engine/engine-errors.ts";
import { messageOf } from "../../../errors.ts";
import { labelNames } from "../records/labels.ts";
import type { CreationName } from "../records/names.ts";
import { readSnapshots, type SavedSnapshot } from "./read-snapshots.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

const atOnce = 6;

/** Deletes snapshots. Nodes that were restored from one keep its layers until they are removed. */
export async function deleteSnapshots(
  engine: Engine,
  snapshots: readonly SavedSnapshot[],
  signal: AbortSignal,
): Promise<void> {
  const accepts = (stderr: string): boolean => means(stderr, "gone");
  const tasks = snapshots.flatMap(({ images, volumes }) => [
    ...images.flatMap(({ names }) => names.map((name) => engine.kind.untagWords(name))),
    ...volumes.map(({ volume }) => ["volume", "rm", volume]),
  ]);
  await mapConcurrently(tasks, atOnce, async (words) => engine.change({ words, accepts }), signal);
  const creationIds = new Set(snapshots.map(({ creationId }) => creationId));
  for (const creationId of creationIds) await removeImages(engine, creationId, signal);
}

/**
 * Deletes all snapshots of a creation whose containers are gone. Resolves with a sentence about what is left, if
 * anything.
 */
export async function deleteAllSnapshots(
  engine: Engine,
  { creationId }: Pick<CreationName, "creationId">,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const problem: { text?: string | undefined } = {};
  const look = async (): Promise<true | undefined> => {
    try {
      await deleteSnapshots(engine, await readSnapshots(engine, { creationId }, signal), signal);
      const left = await removeImages(engine, creationId, signal);
      problem.text = left.length === 0 ? undefined : `Left behind: ${left.length} images of its snapshots.`;
    } catch (error) {
      signal.throwIfAborted();
      problem.text = `Left behind: snapshots (${messageOf(error)}).`;
    }
    return problem.text === undefined ? true : undefined;
  };
  await poll(look, ruleOf(waits.imageRemoval, clock), signal);
  return problem.text;
}

/**
 * Removes images without a name that no container uses any more. Resolves with the ids of those that are still in use.
 * An image on which another one is built goes after that one.
 */
export async function removeImages(
  engine: Engine,
  creationId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const filters = ["--filter=dangling=true", `--filter=label=${labelNames.snapshot}`];
  const words = [
    "images",
    "--quiet",
    "--no-trunc",
    ...filters,
    `--filter=label=${labelNames.creationId}=${creationId}`,
  ];
  for (let before = Infinity; ;) {
    const ids = (await engine.ask({ words }, signal)).split("\n").filter((id) => /^(?:sha256:)?[0-9a-f]{64}$/.test(id));
    if (ids.length === 0 || ids.length >= before) return ids;
    before = ids.length;
    const accepts = (stderr: string): boolean => means(stderr, "gone") || means(stderr, "inUse");
    await mapConcurrently(ids, 1, async (id) => engine.change({ words: ["image", "rm", id], accepts }), signal);
  }
}
