import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import { outsideReason } from "../../../system/printable.ts";
import type { Engine } from "../engine/engine.ts";
import { labelNames, type LabelValues } from "../records/labels.ts";
import { draftImage, snapshotImage } from "../records/names.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import { saveVolumes } from "./copy-volumes.ts";

const atOnce = 6;
/** A large file system on a slow disk takes minutes. */
const commitLimitMs = 30 * 60_000;

/**
 * Saves the file systems of these containers while all of them are paused. Gives the images their final names last: if
 * all names exist, the snapshot is complete.
 */
export async function saveNodes(
  engine: Engine,
  { containers, snapshot, rights }: SavePlan,
  signal: AbortSignal,
): Promise<void> {
  await using _ = await pause(engine, containers);
  const sizes = await mapConcurrently(
    containers,
    atOnce,
    async (node) => saveVolumes(engine, node, { snapshot, rights }),
    signal,
  );
  const commit = async (node: NodeContainer, place: number): Promise<unknown> =>
    engine.change({ words: commitWords(node, snapshot, sizes[place] ?? 0), limitMs: commitLimitMs });
  await mapConcurrently(containers, atOnce, commit, signal);
  // If this program was killed, the engine would finish its last commit while the nodes already continue. Such a commit
  // only leaves a draft.
  await mapConcurrently(containers, atOnce, async (node) => finish(engine, node, snapshot), signal);
}

async function finish(engine: Engine, node: NodeContainer, snapshot: string): Promise<void> {
  const draft = draftImage(node.creationId, snapshot, node);
  await engine.change({ words: ["tag", draft, snapshotImage(node.creationId, snapshot, node)] });
  await engine.change({ words: engine.kind.untagWords(draft) });
}

export interface SavePlan {
  readonly containers: readonly NodeContainer[];
  readonly snapshot: string;
  readonly rights: readonly string[];
}

/** The containers continue when the result is disposed of, or when this process dies. */
async function pause(engine: Engine, containers: readonly NodeContainer[]): Promise<AsyncDisposable> {
  const ids = containers.map(({ id }) => id);
  const unpausing = engine.defer(["unpause", ...ids]);
  try {
    await engine.change({ words: ["pause", ...ids] });
  } catch (error) {
    // Some containers may be paused already.
    await unpausing.run();
    throw error;
  }
  return {
    [Symbol.asyncDispose]: async () => {
      const end = await unpausing.run();
      if (end.status === 0) return;
      const nodes = containers.map(nodeReference).join(", ");
      throw new ClusterError("engine-failed", `The nodes ${nodes} are still paused: ${outsideReason(end.stderr)}.`, {
        hint: `Let them continue: ${engine.kind.name} unpause ${ids.map((id) => id.slice(0, 12)).join(" ")}`,
      });
    },
  };
}

/** The image inherits all labels of the container. */
function commitWords(node: NodeContainer, snapshot: string, volumeKilobytes: number): readonly string[] {
  const labels: LabelValues = { snapshot, address: node.address ?? "", volumeSize: String(volumeKilobytes) };
  const changes = Object.entries(labels).map(
    ([key, value]) => `--change=LABEL ${labelNames[key as keyof LabelValues]}=${value}`,
  );
  return ["commit", "--pause=false", ...changes, node.id, draftImage(node.creationId, snapshot, node)];
}
