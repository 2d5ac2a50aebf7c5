import { rm } from "node:fs/promises";
import type { AbandonedCreation } from "../system/creation-folder.ts";
import { abandonedCreations } from "../system/creation-folder.ts";
import type { Progress } from "../system/progress.ts";

/**
 * Removes what creates of this id that were killed on this machine have left. `removeOne` resolves with a sentence about what of one creation it
 * could not remove.
 */
export async function removeAbandoned(
  abandoned: { readonly root: string; readonly clusterId: string },
  removeOne: (creation: AbandonedCreation) => Promise<string | undefined>,
  progress: Progress,
): Promise<void> {
  const creations = await abandonedCreations(abandoned.root, abandoned.clusterId);
  if (creations.length === 0) return;
  using step = progress.start("Remove what a create that was cut short had left");
  await Promise.all(
    creations.map(async (creation) => {
      const left = await removeOne(creation);
      // Its key opens nothing any more.
      if (left === undefined) await rm(creation.directory, { recursive: true, force: true });
      else progress.warn(left);
    }),
  );
  step.done();
}
