import { shellText } from "../../../ssh/shell-text.ts";
import type { Engine } from "../engine/engine.ts";
import { labelArguments, snapshotVolume } from "../records/labels.ts";
import type { NodeContainer, NodeVolume } from "../records/read-containers.ts";
import type { SavedNode } from "./read-snapshots.ts";
import refillFile from "./refill-volumes.sh" with { type: "text" };
import saveFile from "./save-volumes.sh" with { type: "text" };

const copyLimitMs = 30 * 60_000;
/** Where the helper has the volume of the snapshot. */
const copyFolder = "/cluster-e2e-snapshot";
/**
 * Below it, the helper has the node's own volumes, but no folders of this machine, which a node may
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
  const script = shellText(saveFile, { SOURCE: source, TARGET: copyFolder });
  const mounts = [
    ...volumeWords(node.volumes, ":ro"),
    `--mount=type=volume,source=${volume},target=${copyFolder}`,
  ];
  const argv = ["/bin/sh", "-ec", script, "sh", ...pathsOf(node.volumes)] as const;
  const words = helperWords({ rights, mounts, image: node.imageId, argv });
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
  const script = shellText(refillFile, { SOURCE: source, TARGET: copyFolder });
  const mounts = [...volumeWords(volumes, ""), `--volume=${node.volume}:${copyFolder}:ro`];
  const argv = ["/bin/sh", "-ec", script, "sh", ...pathsOf(volumes)] as const;
  const words = helperWords({ rights, mounts, image: node.image, argv });
  await engine.change({ words, limitMs: copyLimitMs });
}

/** The arguments of `tar` for a volume, in either direction. They preserve attributes that only root may set. */
const tarWords = [
  "--numeric-owner",
  "--xattrs",
  "--xattrs-include=*",
  `--directory=${copyFolder}`,
] as const;

/** The command that prints the contents of a snapshot's volume as an archive. */
export const readVolumeWords = ({
  rights,
  image,
  volume,
}: Helper & VolumeOfImage): readonly string[] => {
  const mounts = [`--volume=${volume}:${copyFolder}:ro`];
  return helperWords({
    rights,
    mounts,
    image,
    argv: ["tar", "--create", "--format=posix", ...tarWords, "."],
  });
};

/** The command that fills such a volume from an archive on its input. */
export const writeVolumeWords = ({
  rights,
  image,
  volume,
}: Helper & VolumeOfImage): readonly string[] => {
  const mounts = ["--interactive", `--volume=${volume}:${copyFolder}`];
  return helperWords({ rights, mounts, image, argv: ["tar", "--extract", ...tarWords] });
};

interface VolumeOfImage {
  /** It has `tar`. */
  readonly image: string;
  readonly volume: string;
}

const pathsOf = (volumes: readonly NodeVolume[]): readonly string[] =>
  volumes.map(({ path }) => path);

const volumeWords = (volumes: readonly NodeVolume[], mode: "" | ":ro"): readonly string[] =>
  volumes.map(({ name, path }) => `--volume=${name}:${source}${path}${mode}`);

interface HelperRun extends Helper {
  readonly mounts: readonly string[];
  readonly image: string;
  readonly argv: readonly [string, ...string[]];
}

/** The engine keeps no log, which would hold all that `tar` writes. */
const alone = ["--rm", "--network=none", "--log-driver=none", "--user=0:0"];

const helperWords = ({
  rights,
  mounts,
  image,
  argv: [program, ...words],
}: HelperRun): readonly string[] => [
  "run",
  ...alone,
  ...rights,
  ...mounts,
  `--entrypoint=${program}`,
  image,
  ...words,
];
