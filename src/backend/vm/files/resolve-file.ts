import { mkdir, rm } from "node:fs/promises";
import { platform } from "node:os";
import { dirname, join } from "node:path";
import { nodeCount } from "../../../model/cluster-record.ts";
import * as read from "../../../model/reader.ts";
import { parseKey } from "../../../ssh/keys.ts";
import { assertFreeSpace, makePrivateFolder } from "../../../system/files/private-file.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import { unpackBlocks, writeSparse } from "../../../system/files/sparse.ts";
import type { Runtime, Work } from "../../../system/runtime.ts";
import { usableMemory } from "../../../system/usable-memory.ts";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
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
import { obtainFile } from "../../shared/obtain-file.ts";
import { snapshotTitle } from "../../shared/describe-copy.ts";
import { isOver } from "../../shared/lifetimes.ts";
import { type MachineSettings, endOf } from "../cluster-facts.ts";
import type { CopyOrigin, OpenOrigin } from "../copies/copy-origin.ts";
import { closeStore, imageFolder } from "../images/image-store.ts";
import { writeInstanceId } from "../machines/machine-arguments.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { assertMemory, megabytesOf, usableVersion } from "../plan.ts";
import {
  type AcceleratorTrial,
  chooseAccelerator,
  cpuModelProblem,
  trialLimitsMs,
  tryHost,
} from "../qemu/accelerator.ts";
import { readBrokenAccelerator } from "../qemu/broken-accelerator.ts";
import { type Qemu, release } from "../qemu/qemu.ts";
import { isMemory, snapshotsFolder } from "../snapshots/snapshot-files.ts";
import { newNodes } from "../vm-machines.ts";
import {
  type VmFileFacts,
  describeCpu,
  keysPart,
  layerPart,
  nodeParts,
  readVmFacts,
} from "./file-facts.ts";
import { type Layer, type LayerStore, findImage, settleDisk, storeLayer } from "./layers.ts";

/** A file whose manifest has been checked, and how its cluster can run on this computer. */
interface Loading {
  readonly qemu: Qemu;
  readonly runtime: Runtime;
  readonly file: ClusterFile;
  readonly facts: VmFileFacts;
  /** The images that the file lacks, by the layer's number. */
  readonly images: ReadonlyMap<number, string>;
}

/**
 * Checks a file's manifest, and how its machines can run here; creates nothing. Throws `bad-usage`
 * and `snapshot-unusable` like `openClusterFile`, `image-not-found` if an image is neither in the
 * file nor on this computer, `capacity-lacking` and `machine-not-set-up`.
 */
export async function resolveFile(
  work: Work,
  qemu: Qemu,
  { file: named, copies = 1 }: FileCopyRequest,
): Promise<CopyOrigin> {
  using checking = work.progress.start("Check the file");
  const obtained = await obtainFile(work, named, imageFolder);
  const file = await openClusterFile({ ...obtained, sha256: named.sha256 }, "vm");
  const facts = readVmFacts(file);
  const { architecture, counts, machines } = facts;
  assertSnapshot(file.shown, named, facts.snapshot);
  if (architecture !== qemu.architecture.name)
    throw unusableFile(
      file.shown,
      `holds machines for ${architecture}, and this one is ${qemu.architecture.name}`,
      "Save a cluster on a computer like this one.",
    );
  const [version, { trials, isSandboxed }, cpu, broken] = await Promise.all([
    usableVersion(qemu, nodeCount(counts), work.signal),
    tryHost(qemu, platform(), trialLimitsMs, work.signal),
    describeCpu(),
    readBrokenAccelerator(work.environment),
  ]);
  const hint = `Use a computer with more memory, or ${copies === 1 ? "save a smaller cluster" : "make fewer copies at once"}.`;
  assertMemory(megabytesOf(copies * nodeCount(counts), machines), usableMemory(), hint);
  const images = await findImages({ runtime: work, file, facts }, work.signal);
  const cpuProblem = await cpuProblemOf(qemu, machines, trials, work.signal);
  const whyBoot = whyMemoryDoesNotFit(facts, { version, cpu, trials, cpuProblem });
  const ends = isOver(endOf(facts), work.clock);
  if (ends && whyBoot !== undefined) throw lifetimeOver(file.shown, whyBoot);
  const usable = () => chooseAccelerator(trials, { forced: undefined, broken }, qemu.architecture);
  checking.done();
  const summary = {
    cluster: facts.clusterId,
    snapshot: facts.snapshot,
    createdAt: facts.createdAt,
  };
  const loading = { qemu, runtime: work, file, facts, images };
  return {
    facts,
    nodes: newNodes(counts),
    machines: {
      ...machines,
      isSandboxed,
      ...(whyBoot !== undefined && { accelerator: usable() }),
      ...(cpuProblem !== undefined && { cpuModel: undefined }),
    },
    qemuVersion: version,
    whyBoot,
    ...(!ends && { bootAccelerator: usable }),
    title: `${outside(file.shown)}: ${snapshotTitle(summary)}`,
    summary: { file: file.shown, ...summary },
    open: async (directory, inner) => unpack(loading, directory, inner),
  };
}

const lifetimeOver = (shown: string, whyBoot: string): ClusterError =>
  unusableFile(
    shown,
    `holds nodes whose lifetime is over, so that they would end when they boot; and they cannot continue: ${whyBoot}`,
    "Use a computer like the one that saved the file, or save a cluster without a lifetime.",
  );

interface Here {
  readonly version: string;
  readonly cpu: string;
  readonly trials: readonly AcceleratorTrial[];
  /** Why machines can't have their CPU model here. */
  readonly cpuProblem: string | undefined;
}

/** Returns why saved memory can't continue on this computer, as the end of a sentence. */
export function whyMemoryDoesNotFit(
  {
    qemuVersion: saved,
    machines: { accelerator, cpuModel },
    cpu,
  }: Pick<VmFileFacts, "qemuVersion" | "machines" | "cpu">,
  here: Here,
): string | undefined {
  if (release(saved) !== release(here.version))
    return `QEMU ${saved} saved their memory, and this computer has ${here.version}`;
  if (accelerator === "tcg") return undefined;
  const problem = here.trials.find((trial) => trial.accelerator === accelerator);
  if (problem === undefined || problem.problem !== undefined)
    return `their memory was saved under ${accelerator}, which does not work here`;
  if (here.cpuProblem !== undefined)
    return `the CPU model ${outside(cpuModel ?? "")} does not work: ${here.cpuProblem}`;
  // A kernel chooses between its ways to do things by the maker, which hardware shows machines of any model.
  const fits = cpuModel === undefined ? cpu === here.cpu : makerOf(cpu) === makerOf(here.cpu);
  return fits ? undefined : `their memory was saved on another processor, ${outside(cpu)}`;
}

/** Under an accelerator that doesn't work here, nobody knows. */
async function cpuProblemOf(
  qemu: Qemu,
  { accelerator, cpuModel: model }: MachineSettings,
  trials: readonly AcceleratorTrial[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const works = trials.some(
    (trial) => trial.accelerator === accelerator && trial.problem === undefined,
  );
  return model !== undefined && works
    ? cpuModelProblem(qemu, { accelerator, model }, signal)
    : undefined;
}

const makerOf = (cpu: string): string | undefined => /\b(?:AMD|Intel)\b/.exec(cpu)?.[0];

async function findImages(
  { runtime, file, facts }: Pick<Loading, "runtime" | "file" | "facts">,
  signal: AbortSignal,
): Promise<ReadonlyMap<number, string>> {
  const images = new Map<number, string>();
  for (const [number, layer] of facts.layers.entries()) {
    if (file.manifest.parts.some(({ name }) => name === layerPart(number))) continue;
    const path = await findImage(imageFolder(runtime.environment), layer, signal);
    if (path === undefined)
      throw new ClusterError(
        "image-not-found",
        `${outside(file.shown)} lacks its image, and this computer does not have it: SHA-256 ${layer.sha256}.`,
        {
          hint: "Create a cluster from that image first, or save the file with its image.",
          facts: { file: file.shown, sha256: layer.sha256 },
        },
      );
    images.set(number, path);
  }
  return images;
}

/** A thousand host keys take a tenth of it. */
const mostKeysBytes = 1024 * 1024;

/**
 * Unpacks the file in the folder of the new cluster, and its layers among the images, where they
 * stay. Throws what `readParts` does, and `snapshot-unusable` for disks that name other files.
 */
async function unpack(
  loading: Loading,
  directory: string,
  signal: AbortSignal,
): Promise<OpenOrigin> {
  const { runtime, file, facts, qemu, images } = loading;
  const { shown } = file;
  // No snapshot has such a name; whatever removes the snapshots removes it.
  const folder = join(snapshotsFolder(directory), "..file");
  const remove = async (): Promise<void> => rm(folder, { recursive: true, force: true });
  await assertSpace(loading, directory);
  using step = runtime.progress.start("Unpack the file");
  const nodes = newNodes(facts.counts);
  const paths = partPaths(folder, nodes);
  // Those of the file follow as they are stored.
  const layers: Layer[] = facts.layers.map((layer, number) => ({
    ...layer,
    path: images.get(number) ?? "",
    sum: layer.sha256,
  }));
  const store: LayerStore = { qemu, folder: imageFolder(runtime.environment), runtime, shown };
  const got: { keys?: Buffer } = {};
  const take: TakePart = async (part, chunks) => {
    const path = paths.get(part.name);
    const number = facts.layers.findIndex((_, place) => layerPart(place) === part.name);
    const layer = layers[number];
    const below = layers[(layer === undefined ? facts.below[part.name] : layer.below) ?? -1];
    if (part.name === keysPart) got.keys = await readKeysPart(part, chunks, shown);
    else if (layer !== undefined)
      layers[number] = await storeLayer(store, { layer, below }, chunks, signal);
    else if (path !== undefined) {
      await unpackMachineFile(loading, { name: part.name, path }, chunks);
      if (part.name.endsWith(".qcow2"))
        await settleDisk(store, { path, name: part.name, below }, signal);
    }
  };
  try {
    await remove();
    await makePrivateFolder(snapshotsFolder(directory));
    await makePrivateFolder(folder);
    await readParts(file, take, step, signal);
    const keys = await parseKeys(got.keys, nodes.length, shown);
    for (const [place, node] of nodes.entries())
      await writeInstanceId(machineFiles(folder, node).seed, facts.instanceIds[place] ?? "");
    step.done();
    return { directory: folder, folder, movesDisks: true, ...keys, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Returns where the parts of the nodes go, by their names. */
const partPaths = (folder: string, nodes: ReturnType<typeof newNodes>) =>
  new Map(
    nodes.flatMap((node) =>
      Object.values(nodeParts({ snapshot: folder, cluster: folder }, node)).map(
        ({ name, path }) => [name, path],
      ),
    ),
  );

async function unpackMachineFile(
  { file: { shown }, facts }: Loading,
  { name, path }: { readonly name: string; readonly path: string },
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  if (!isMemory(path)) return await writeSparse(path, chunks);
  const damaged = (): ClusterError =>
    unusableFile(shown, `is damaged: ${name} is no memory of such a node`);
  await unpackBlocks({ path, bytes: facts.machines.memoryMegabytes * 1024 ** 2 }, chunks, damaged);
}

async function assertSpace({ file, runtime }: Loading, directory: string): Promise<void> {
  const { parts } = file.manifest;
  const layers = parts.filter(({ name }) => name.startsWith("layer-"));
  const images = imageFolder(runtime.environment);
  await closeStore(runtime.environment);
  await assertFreeSpace(images, bytesOf(layers));
  await assertFreeSpace(directory, bytesOf(parts) - bytesOf(layers));
}

async function readKeysPart(
  { bytes }: FilePart,
  chunks: AsyncIterable<Uint8Array>,
  shown: string,
): Promise<Buffer> {
  if (bytes > mostKeysBytes) throw unusableFile(shown, "is damaged: its keys are too long");
  const taken: Uint8Array[] = [];
  for await (const chunk of chunks) taken.push(chunk);
  return Buffer.concat(taken);
}

const parseKeyTexts = read.object({
  privateKey: read.string,
  hostKeys: read.list(read.matching(/^[A-Za-z0-9+/]+={0,2}$/)),
});

async function parseKeys(
  given: Buffer | undefined,
  count: number,
  shown: string,
): Promise<Pick<OpenOrigin, "privateKey" | "hostKeys">> {
  const texts = parseKeyTexts(parseJson(given?.toString("utf8") ?? ""));
  const key = texts === undefined ? undefined : await parseKey(texts.privateKey);
  if (
    texts?.hostKeys.length !== count ||
    key === undefined ||
    key instanceof Error ||
    !key.isPrivateKey()
  )
    throw unusableFile(shown, "is damaged: it has no usable keys");
  return {
    privateKey: texts.privateKey,
    hostKeys: texts.hostKeys.map((each) => Buffer.from(each, "base64")),
  };
}
