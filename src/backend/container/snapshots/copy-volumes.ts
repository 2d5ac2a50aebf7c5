import { labelArguments } from "../records/labels.ts";
import { snapshotVolume } from "../records/names.ts";
import type { Engine } from "../engine/engine.ts";
import type { NodeContainer, NodeVolume } from "../records/read-containers.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import type { SavedNode } from "./read-snapshots.ts";
import refillFile from "./refill-volumes.sh" with { type: "text" };
import saveFile from "./save-volumes.sh" with { type: "text" };

const copyLimitMs = 30 * 60_000;
const place = "/cluster-e2e-snapshot";
/**
 * Below it, the helper has the node's own volumes and nothing else: not the folders of this machine that a node may
 * have inside a volume.
 */
const source = "/cluster-e2e-node";

interface Helper {
  /** Options that let the copy keep every attribute of a file. */
  readonly rights: readonly string[];
}

/**
 * Copies what is in the node's own volumes into a volume of the snapshot, with a helper container. Resolves with its
 * size in kilobytes; 0 if there was nothing to copy, and then there is no volume.
 */
export async function saveVolumes(
  engine: Engine,
  node: Pick<NodeContainer, "imageId" | "volumes" | "clusterId" | "creationId" | "role" | "index">,
  { snapshot, rights }: Helper & { readonly snapshot: string },
): Promise<number> {
  if (node.volumes.length === 0) return 0;
  const { clusterId, creationId, role, index } = node;
  const volume = snapshotVolume(creationId, snapshot, node);
  const labels = labelArguments({ clusterId, creationId, role, index: String(index), snapshot });
  await engine.change({ words: ["volume", "create", ...labels, volume] });
  const script = shellText(saveFile, { SOURCE: source, TARGET: place });
  const mounts = [...volumeWords(node.volumes, ":ro"), `--mount=type=volume,source=${volume},target=${place}`];
  const words = helperWords({ rights, mounts, image: node.imageId, script, paths: pathsOf(node.volumes) });
  const size = (await engine.change({ words, limitMs: copyLimitMs })).trim();
  // Some file systems count nothing for folders and empty files, which are to be restored like any other.
  if (size !== "empty") return Math.max(1, Number(size));
  await engine.change({ words: ["volume", "rm", volume] });
  return 0;
}

/** Puts the contents back into the volumes of a container that has not started yet. */
export async function refillVolumes(
  engine: Engine,
  { volumes }: Pick<NodeContainer, "volumes">,
  { node, rights }: Helper & { readonly node: SavedNode },
): Promise<void> {
  if (node.volume === undefined) return;
  const script = shellText(refillFile, { SOURCE: source, TARGET: place });
  const mounts = [...volumeWords(volumes, ""), `--volume=${node.volume}:${place}:ro`];
  const words = helperWords({ rights, mounts, image: node.image, script, paths: pathsOf(volumes) });
  await engine.change({ words, limitMs: copyLimitMs });
}

const pathsOf = (volumes: readonly NodeVolume[]): readonly string[] => volumes.map(({ path }) => path);

const volumeWords = (volumes: readonly NodeVolume[], mode: "" | ":ro"): readonly string[] =>
  volumes.map(({ name, path }) => `--volume=${name}:${source}${path}${mode}`);

function helperWords(helper: {
  readonly rights: readonly string[];
  readonly mounts: readonly string[];
  readonly image: string;
  readonly script: string;
  readonly paths: readonly string[];
}): readonly string[] {
  const { rights, mounts, image, script, paths } = helper;
  const run = ["run", "--rm", "--network=none", "--user=0:0", ...rights, ...mounts, "--entrypoint=/bin/sh"];
  return [...run, image, "-ec", script, "sh", ...paths];
}
