import { limitsOf } from "../limits.ts";
import { statfs } from "node:fs/promises";
import { platform as hostPlatform } from "node:os";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { cacheFolder } from "../../../store/state-folder.ts";
import { checkedTar } from "../../../system/files/checked-tar.ts";
import { ArchiveProblem } from "../../../system/files/tar.ts";
import { acquireProcessLock } from "../../../system/processes/process-identity.ts";
import type { Environment, Runtime, Step, Work } from "../../../system/runtime.ts";
import type { FileCopyRequest } from "../../contract.ts";
import {
  type ClusterFile,
  type FilePart,
  type TakePart,
  assertSnapshot,
  bytesOf,
  openClusterFile,
  readParts,
  unusableFile,
} from "../../shared/cluster-file.ts";
import { snapshotTitle } from "../../shared/describe-copy.ts";
import { obtainFile } from "../../shared/obtain-file.ts";
import type { CopiedNode, CopiedNodes, CopyOrigin, OpenOrigin } from "../copies/copy-origin.ts";
import { sources } from "../distributions.ts";
import { findReach } from "../engine/find-reach.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { type Engine, readEngineFacts } from "../engine/engine.ts";
import {
  type CreationName,
  draftImage,
  labelArguments,
  snapshotVolume,
} from "../records/labels.ts";
import { lookAtMachine } from "../look-at-machine.ts";
import { deleteNames, deleteSnapshots } from "../snapshots/remove-snapshots.ts";
import { readSnapshots } from "../snapshots/read-snapshots.ts";
import { nodeRights } from "../snapshots/saved-nodes.ts";
import { writeVolumeWords } from "../snapshots/saved-volumes.ts";
import {
  type ContainerFileFacts,
  type SavedNodeFacts,
  isLayer,
  missingLayers,
  readContainerFacts,
  volumePart,
} from "./file-facts.ts";
import { ImageLoader, commonLayers, describeImages } from "./image-archive.ts";

const fillLimitMs = 60 * 60_000;

/** A file whose manifest has been checked. */
interface Loading {
  readonly engine: Engine;
  readonly root: string;
  readonly runtime: Runtime;
  readonly file: ClusterFile;
  readonly facts: ContainerFileFacts;
  /** The ids of images of the engine that have the layers that the file lacks. */
  readonly bases: readonly string[];
  readonly here: EngineFacts;
}

const fileFolder = (environment: Environment): string => join(cacheFolder(environment), "files");

/**
 * Checks a file's manifest, and how its nodes can run here; creates nothing. Throws `bad-usage` and
 * `snapshot-unusable` like `openClusterFile`, `image-not-found` if layers are neither in the file
 * nor on this computer, and `capacity-lacking`.
 */
export async function fileOrigin(
  work: Work,
  engine: Engine,
  { request: { file: named }, root }: { readonly request: FileCopyRequest; readonly root: string },
): Promise<CopyOrigin> {
  using checking = work.progress.start("Check the file");
  const obtained = await obtainFile(work, named, fileFolder);
  const file = await openClusterFile({ ...obtained, sha256: named.sha256 }, "container");
  const facts = readContainerFacts(file);
  const here = await readEngineFacts(engine, work.signal);
  assertSnapshot(file.shown, named, facts.snapshot);
  assertRunsHere({ file, facts }, here, work);
  await assertFileSpace(work, engine, { file, here });
  const bases = await findBases(engine, { file, facts }, work.signal);
  checking.done();
  const {
    clusterId: cluster,
    snapshot,
    createdAt,
    counts,
    variant,
    distribution,
    webUi,
    platform,
    isOffline = false,
    nodes,
  } = facts;
  const summary = { cluster, snapshot, createdAt };
  return {
    facts: { counts, variant, distribution, webUi, platform, isOffline },
    settings: settingsOf(nodes[0]),
    engineFacts: here,
    title: `${outside(file.shown)}: ${snapshotTitle(summary)}`,
    summary: { file: file.shown, ...summary },
    open: async (creation, inner) =>
      open({ engine, root, runtime: work, file, facts, bases, here }, creation, inner),
  };
}

/** Folders of the other computer are not mounted, whatever the file says. */
const settingsOf = (node: SavedNodeFacts | undefined): CopiedNode["settings"] => ({
  customVolumes: [],
  limits: limitsOf(node ?? {}),
});

function assertRunsHere(
  {
    file: { shown },
    facts: { architecture, cgroupVersion, distribution },
  }: Pick<Loading, "file" | "facts">,
  here: EngineFacts,
  { progress }: Runtime,
): void {
  if (architecture !== here.architecture)
    throw unusableFile(
      shown,
      `holds containers for ${architecture}, and this computer is ${here.architecture}`,
      "Save a cluster on a computer like this one.",
    );
  if (cgroupVersion === here.cgroupVersion || here.cgroupVersion === "1") return;
  if (sources[distribution]?.needsCgroups1 === true)
    throw unusableFile(
      shown,
      `holds nodes with ${distribution}, whose systemd needs cgroups 1, and this computer has cgroups 2`,
      "Use a computer with cgroups 1.",
    );
  progress.warn(
    "The cluster was saved under cgroups 1, and this computer has cgroups 2: its platform may not start.",
  );
}

/** The engine keeps a copy of all layers while it unpacks them. */
export async function assertFileSpace(
  { progress, signal }: Pick<Work, "progress" | "signal">,
  engine: Engine,
  { file: { manifest }, here }: Pick<Loading, "file" | "here">,
): Promise<void> {
  const needed = 2 * bytesOf(manifest.parts);
  const free = await freeSpace(engine, here, signal);
  const [has, needs] = [free ?? 0, needed].map((bytes) => (bytes / 1e9).toFixed(1));
  if (free === undefined)
    progress.detail(
      1,
      `The engine's free space is not known; unpacking the file takes ${needs} GB.`,
    );
  else if (free < needed)
    throw new ClusterError(
      "capacity-lacking",
      `${engine.kind.title}'s store of images has ${has} GB of free space, but ${needs} GB are required.`,
      { hint: "Free some space." },
    );
}

/** A folder of this computer says nothing about an engine that is proved to be elsewhere. */
async function freeSpace(
  engine: Engine,
  facts: EngineFacts,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { reach } = await findReach(engine, facts, hostPlatform(), signal);
  if (reach === "engine" || facts.hasContainerdStore)
    return (await lookAtMachine(engine, signal))?.freeBytes;
  const space = await statfs(facts.rootFolder).catch(() => undefined);
  return space && space.bavail * space.bsize;
}

async function findBases(
  engine: Engine,
  { file, facts }: Pick<Loading, "file" | "facts">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const names = new Set(file.manifest.parts.map(({ name }) => name));
  const missing = facts.nodes
    .map(({ layers }) => missingLayers(names, layers))
    .filter(({ length }) => length > 0);
  if (missing.length === 0) return [];
  const images = await describeImages(engine, signal);
  const bases = missing.map(
    (layers) => images.find((image) => commonLayers(image, layers) === layers.length)?.id,
  );
  const found = bases.filter((id) => id !== undefined);
  if (found.length === bases.length) return [...new Set(found)];
  const base = facts.base === undefined ? "" : ` ${outside(facts.base)}`;
  throw new ClusterError(
    "image-not-found",
    `${outside(file.shown)} lacks the nodes' image${base}, and this computer does not have the same one.`,
    {
      hint: "Copy that image to this computer (save and load of the engine): one that was built here differs. Or save the file with its image.",
      facts: { file: file.shown },
    },
  );
}

/** Throws what `readParts` does, and leaves nothing if it fails. */
async function open(
  loading: Loading,
  creation: CreationName,
  signal: AbortSignal,
): Promise<OpenOrigin> {
  const { engine, root, runtime, file } = loading;
  const never = new AbortController().signal;
  const remove = async (): Promise<void> => {
    await deleteSnapshots(
      engine,
      await readSnapshots(engine, { creationId: creation.creationId }, never),
      never,
    );
  };
  // Several at once would fill the disk with copies of the same layers.
  const onWait = (advice: string): void =>
    runtime.progress.note(`Waiting for another process that loads a file.${advice}`);
  await using _ = await acquireProcessLock(
    join(root, ".load.lock"),
    { clock: runtime.clock, onWait },
    signal,
  );
  using step = runtime.progress.start("Load the file");
  try {
    // The images are created before the volumes are read. So a file with volumes is checked as a whole before that.
    if (!file.manifest.parts.every(isLayer)) await readChecked(loading, skipPart, step, signal);
    const nodes = await load(loading, creation, step, signal);
    step.done();
    const names = {
      images: nodes.map(({ image }) => image),
      volumes: nodes.flatMap(({ volume }) => volume ?? []),
    };
    const release: OpenOrigin["release"] = async (containers) =>
      containers === "running" ? deleteNames(engine, names, never) : remove();
    return { nodes, copiedFrom: [], release };
  } catch (error) {
    await remove();
    throw error;
  }
}

const skipPart: TakePart = async (_, chunks) => {
  for await (const _chunk of chunks) continue;
};

/** Reads all parts, and checks that each is an archive that nothing leads out of. */
async function readChecked(
  { file }: Loading,
  take: TakePart,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  const checked = async function* (
    part: FilePart,
    chunks: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    try {
      yield* checkedTar(chunks);
    } catch (error) {
      if (!(error instanceof ArchiveProblem)) throw error;
      throw unusableFile(file.shown, `is damaged: in ${part.name}, ${messageOf(error)}`);
    }
  };
  await readParts(file, async (part, chunks) => take(part, checked(part, chunks)), step, signal);
}

async function load(
  loading: Loading,
  creation: CreationName,
  step: Step,
  signal: AbortSignal,
): Promise<CopiedNodes> {
  const { engine, root, facts, bases, here } = loading;
  const nodes = facts.nodes.map((node) => savedNode(loading, creation, node));
  const [first, ...others] = nodes;
  if (first === undefined) throw new RangeError("A file without nodes");
  const present = await presentLayers(loading, signal);
  await using loader = new ImageLoader(engine);
  if (!engine.kind.knowsLayers(here))
    for (const base of bases) await loader.addLayersOf(base, signal);
  const finish = async (): Promise<void> => {
    const images = nodes.map(({ image: name, labels }, position) => {
      const { volumes = [], layers = [] } = facts.nodes[position] ?? {};
      return { name, labels, volumes, layers };
    });
    await loader.finish(images, facts, signal);
  };
  const volumes: FilePart[] = [];
  await readChecked(
    loading,
    async (part, chunks) => {
      if (isLayer(part) && present.has(part.sha256)) return await skipPart(part, chunks);
      if (isLayer(part))
        return await loader.addLayer(part.sha256, {
          sizeBytes: part.bytes,
          contents: () => chunks,
        });
      if (volumes.length === 0) await finish();
      volumes.push(part);
      const node = nodes.find((each) => volumePart(each) === part.name) ?? first;
      const { rights } = await nodeRights(
        engine,
        { image: first.image, root, facts: here },
        signal,
      );
      await fillVolume(engine, { node, rights }, chunks);
    },
    step,
    signal,
  );
  if (volumes.length === 0) await finish();
  return [first, ...others];
}

/** The layers that the engine already has in the right position for every node. It need not load them again. */
async function presentLayers(
  { engine, facts: { nodes }, here }: Loading,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const images = engine.kind.knowsLayers(here) ? await describeImages(engine, signal) : [];
  const counts = nodes.map(({ layers }) =>
    Math.max(0, ...images.map((image) => commonLayers(image, layers))),
  );
  const needed = new Set(nodes.flatMap(({ layers }, position) => layers.slice(counts[position])));
  return new Set(nodes.flatMap(({ layers }) => layers.filter((layer) => !needed.has(layer))));
}

function savedNode(
  { file, facts }: Loading,
  creation: CreationName,
  node: SavedNodeFacts,
): CopiedNode {
  const { snapshot, counts, createdAt } = facts;
  const { role, index, platformAddress } = node;
  const { clusterId, creationId } = creation;
  // Only complete snapshots have other names. If this program is killed, `doctor` shows an incomplete one.
  const image = draftImage(creationId, snapshot, node);
  const hasVolume = file.manifest.parts.some(({ name }) => name === volumePart(node));
  return {
    ...creation,
    role,
    index,
    snapshot,
    image,
    names: [image],
    createdAt: new Date(createdAt),
    counts,
    address: platformAddress.split("/")[0] ?? "",
    platformAddress,
    settings: settingsOf(node),
    volumeKilobytes: 0,
    volume: hasVolume ? snapshotVolume(creationId, snapshot, node) : undefined,
    labels: { clusterId, creationId, role, index: String(index), snapshot },
  };
}

async function fillVolume(
  engine: Engine,
  { node, rights }: { readonly node: CopiedNode; readonly rights: readonly string[] },
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { volume = "", image, labels } = node;
  await engine.change({ words: ["volume", "create", ...labelArguments(labels), volume] });
  await engine.change({
    words: writeVolumeWords({ rights, image, volume }),
    stdin: chunks,
    limitMs: fillLimitMs,
  });
}
