import { rm } from "node:fs/promises";
import type { Backend } from "../../model/backend.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { ClusterError } from "../../errors.ts";
import { abandonedCreations } from "../../system/files/creation-folder.ts";

/**
 * Removes what earlier creations of this id left on this machine because they were killed or their roll-back failed. Reports what it can't remove;
 * the id may then be refused.
 */
export async function removeLeftovers(
  backend: Pick<Backend<never>, "remove">,
  { root, clusterId }: { readonly root: string; readonly clusterId: string },
  { progress }: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  const creations = await abandonedCreations(root, clusterId);
  if (creations.length === 0) return;
  using step = progress.start("Remove what a create that was cut short had left");
  await Promise.all(
    creations.map(async ({ directory, creation }) => {
      try {
        await backend.remove({ id: clusterId, creationId: creation.creationId, directory }, signal);
        // Its key no longer opens anything.
        await rm(directory, { recursive: true, force: true });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ClusterError) || error.transient) throw error;
        progress.warn(error.message);
      }
    }),
  );
  step.done();
}
