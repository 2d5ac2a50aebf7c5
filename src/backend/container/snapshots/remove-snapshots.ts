import { messageOf } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { numbered } from "../../../system/amounts.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { indicates } from "../engine/engine-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { type CreationName, readLabels } from "../records/labels.ts";
import {
  describeContainers,
  describeEach,
  filterWord,
  labelsOf,
  readCopiedFrom,
} from "../records/read-containers.ts";
import { type SavedSnapshot, readSnapshots } from "./read-snapshots.ts";

const removalsAtOnce = 6;

/** Deletes snapshots. Nodes that were restored from one keep its layers until they are removed. */
export async function deleteSnapshots(
  engine: Engine,
  snapshots: readonly SavedSnapshot[],
  signal: AbortSignal,
): Promise<void> {
  const images = snapshots.flatMap((snapshot) => snapshot.images.flatMap(({ names }) => names));
  const volumes = snapshots.flatMap((snapshot) => snapshot.volumes.map(({ volume }) => volume));
  await deleteNames(engine, { images, volumes }, signal);
  await removeUnusedImages(
    engine,
    [...new Set(snapshots.map(({ creationId }) => creationId))],
    signal,
  );
}

/** Deletes volumes, and the names of images, which stay as long as containers use them. */
export async function deleteNames(
  engine: Engine,
  { images, volumes }: Readonly<Record<"images" | "volumes", readonly string[]>>,
  signal: AbortSignal,
): Promise<void> {
  const accepts = (stderr: string): boolean => indicates(stderr, "gone");
  const tasks = [
    ...images.map(engine.kind.untagWords),
    ...volumes.map((volume) => ["volume", "rm", volume]),
  ];
  await mapConcurrently(
    tasks,
    removalsAtOnce,
    async (words) => engine.change({ words, accepts }),
    signal,
  );
}

/**
 * Deletes all snapshots of a creation without containers. Images that copies use stay, without a
 * name. Resolves with a sentence about what is left, if anything.
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
      const isDone = left.length === 0 || (await hasCopies(engine, creationId, signal));
      problem.text = isDone
        ? undefined
        : `Left behind: ${numbered(left.length, "image")} of its snapshots.`;
    } catch (error) {
      signal.throwIfAborted();
      problem.text = `Left behind: snapshots (${messageOf(error)}).`;
    }
    return problem.text === undefined ? true : undefined;
  };
  await poll(look, { ...ruleOf(waits.imageRemoval, clock), seen: () => problem.text }, signal);
  return problem.text;
}

/** Removes the images of these creations' deleted snapshots that no container uses any more. */
export async function removeUnusedImages(
  engine: Engine,
  creationIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (const creationId of creationIds) await removeImages(engine, creationId, signal);
}

/**
 * Whether another cluster's nodes were created from this creation's snapshots. They need the images
 * until they are removed.
 */
async function hasCopies(
  engine: Engine,
  creationId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const containers = await describeContainers(engine, "all", signal);
  return containers.some((container) =>
    readCopiedFrom(readLabels(labelsOf(container))).includes(creationId),
  );
}

const imageId = read.matching(/^(?:sha256:)?[0-9a-f]{64}$/);

/**
 * Removes images without a name that no container uses any more. Resolves with the ids of those that are still in use.
 * An image on which another one is built goes after that one.
 */
export async function removeImages(
  engine: Engine,
  creationId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const words = [
    "images",
    "--quiet",
    "--no-trunc",
    "--filter=dangling=true",
    filterWord({ creationId }),
  ];
  for (let before = Infinity; ;) {
    const ids = (await describeEach(engine, { words, kind: "image" }, signal)).flatMap((image) => {
      const labels = readLabels(labelsOf(image));
      const isOwn = labels.snapshot !== undefined && labels.creationId === creationId;
      return isOwn ? (read.field("Id", imageId)(image) ?? []) : [];
    });
    if (ids.length === 0 || ids.length >= before) return ids;
    before = ids.length;
    const accepts = (stderr: string): boolean =>
      indicates(stderr, "gone") || indicates(stderr, "inUse");
    await mapConcurrently(
      ids,
      1,
      async (id) => engine.change({ words: ["image", "rm", id], accepts }),
      signal,
    );
  }
}
