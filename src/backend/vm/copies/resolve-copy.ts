import { constants, copyFile, mkdir, rename } from "node:fs/promises";
import { platform } from "node:os";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import { nodeHostname, nodeReference } from "../../../model/cluster-record.ts";
import { createKnownHosts } from "../../../ssh/openssh-files.ts";
import { creationFiles } from "../../../store/creation-folder.ts";
import * as read from "../../../model/reader.ts";
import { errorCode, assertFreeSpace } from "../../../system/files/private-file.ts";
import { readOwnJson, readOwnText } from "../../../system/files/read-text.ts";
import type { Work } from "../../../system/runtime.ts";
import { type UsableMemory, usableMemory } from "../../../system/usable-memory.ts";
import type { CopyRequest } from "../../contract.ts";
import { snapshotTitle } from "../../shared/describe-copy.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import type { MachineSettings, NodeFacts } from "../cluster-facts.ts";
import { assertLayersUnchanged } from "../images/base-layers.ts";
import { readOwnCluster } from "../machines/launch.ts";
import { writeSeed } from "../machines/machine-arguments.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { megabytesOf } from "../plan.ts";
import { trialLimitsMs, tryHost } from "../qemu/accelerator.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { sshUser } from "../records.ts";
import type { CopyOrigin, OpenOrigin } from "./copy-origin.ts";
import {
  type SnapshotFacts,
  type StoredSnapshot,
  checkSnapshot,
  findSnapshot,
  copyFailure,
  factsText,
  readSnapshotFacts,
  savedFiles,
} from "../snapshots/snapshot-files.ts";

/**
 * Checks everything that a copy of a snapshot relies on, and creates nothing. Throws
 * `snapshot-not-found` and `snapshot-unusable`, `capacity-lacking` if this computer lacks memory or
 * space for more machines, and `key-missing` if it has no keys for those that were saved.
 */
export async function resolveCopy(
  work: Work,
  qemu: Qemu,
  { source: cluster, snapshot: name, copies }: CopyRequest,
  root: string,
): Promise<CopyOrigin> {
  const source = await readOwnCluster(cluster.directory);
  const snapshot = await findSnapshot(cluster, name);
  const { nodes } = source.facts;
  using checking = work.progress.start("Check the snapshot");
  const saved = await checkSnapshot(qemu, { cluster, facts: source.facts, snapshot }, work.signal);
  await assertAccelerator(qemu, { saved, cluster, name }, work.signal);
  checking.done();
  assertMemory(cluster, saved.machines, usableMemory(), copies);
  await assertSpace(root, saved, copies);
  const keys = await readKeys(cluster, nodes);
  const { createdAt, qemuVersion, machines } = saved;
  const summary = { cluster: cluster.id, snapshot: name, createdAt };
  return {
    facts: source.facts,
    nodes,
    machines,
    whyBoot: undefined,
    qemuVersion,
    title: snapshotTitle(summary),
    summary,
    open: async (_, inner) => {
      // Nobody may delete the snapshot meanwhile.
      const lock = await lockMachines({ ...work, signal: inner }, cluster.directory);
      const { folder } = snapshot;
      const unlock = { [Symbol.asyncDispose]: lock[Symbol.asyncDispose] };
      const opened = { ...keys, directory: source.directory, folder, movesDisks: false, ...unlock };
      try {
        await assertUnchanged(cluster, snapshot, saved);
        await assertLayersUnchanged(source.facts, inner);
        return opened;
      } catch (error) {
        await opened[Symbol.asyncDispose]();
        throw error;
      }
    },
  };
}

/** The plan checked these files, perhaps minutes ago. */
async function assertUnchanged(
  { id }: CopyRequest["source"],
  { name, folder }: StoredSnapshot,
  saved: SnapshotFacts,
): Promise<void> {
  const facts = await readSnapshotFacts(folder);
  if (facts !== undefined && factsText(facts) === factsText(saved)) return;
  throw new ClusterError(
    "snapshot-not-found",
    `The snapshot "${name}" of cluster "${id}" was deleted or made again meanwhile.`,
    { hint: "Try again.", facts: { cluster: id, snapshot: name } },
  );
}

/** Memory that was saved under one accelerator can't continue under another. */
async function assertAccelerator(
  qemu: Qemu,
  {
    saved,
    cluster,
    name,
  }: {
    readonly saved: SnapshotFacts;
    readonly cluster: CopyRequest["source"];
    readonly name: string;
  },
  signal: AbortSignal,
): Promise<void> {
  const { accelerator } = saved.machines;
  if (accelerator === "tcg") return;
  const { trials } = await tryHost(qemu, platform(), trialLimitsMs, signal);
  const trial = trials.find((each) => each.accelerator === accelerator);
  if (trial !== undefined && trial.problem === undefined) return;
  const problem = trial?.problem ?? "this operating system does not have it";
  throw new ClusterError(
    "snapshot-unusable",
    `The snapshot "${name}" of cluster "${cluster.id}" was made under ${accelerator}, which does not work here: ${problem}.`,
    {
      hint: "Create a cluster from an artifact instead.",
      facts: { cluster: cluster.id, snapshot: name, accelerator },
    },
  );
}

/** Machines that use more memory than there is would be killed, and perhaps the source's with them. */
export function assertMemory(
  { id, nodes }: CopyRequest["source"],
  machines: Pick<MachineSettings, "memoryMegabytes">,
  { bytes, owner }: UsableMemory,
  copies = 1,
): void {
  const running = nodes.filter(({ state }) => state === "running").length;
  const needed = megabytesOf(copies * nodes.length + running, machines);
  const total = Math.floor(bytes / 1024 ** 2);
  if (needed <= total) return;
  const of = copies === 1 ? "" : ` of ${copies} copies`;
  const also = running === 0 ? "" : ` beside those of cluster "${id}"`;
  throw new ClusterError(
    "capacity-lacking",
    `The nodes${of}${also} need ${needed} MB of memory, but ${owner} has ${total} MB.`,
    {
      hint:
        copies === 1
          ? `Restore the snapshot in cluster "${id}" instead of creating another cluster.`
          : "Make fewer copies at once.",
      facts: { neededMegabytes: needed, totalMegabytes: total },
    },
  );
}

/** Checks the space for the disks of all copies; the memory is only read. Throws `capacity-lacking`. */
export async function assertSpace(
  root: string,
  { files }: Pick<SnapshotFacts, "files">,
  copies = 1,
): Promise<void> {
  const disks = Object.entries(files).filter(([path]) => path.endsWith(".qcow2"));
  const needed = copies * disks.reduce((sum, [, { bytes }]) => sum + bytes, 0);
  await assertFreeSpace(root, needed, "Free some space, or delete a snapshot.");
}

export async function readKeys(
  { id, directory }: Pick<CopyRequest["source"], "id" | "directory">,
  nodes: readonly NodeFacts[],
): Promise<Pick<OpenOrigin, "privateKey" | "hostKeys">> {
  const files = creationFiles(directory);
  const missing = (what: string, cause?: unknown): ClusterError =>
    new ClusterError("key-missing", `${what} of cluster "${id}" is not on this computer.`, {
      hint: "Without it, the new machines cannot get keys of their own.",
      facts: { cluster: id },
      cause,
    });
  const privateKey = await readOwnText(files.privateKey).catch((error: unknown) => {
    throw missing("The SSH key", messageOf(error));
  });
  const knownHosts = createKnownHosts(files.knownHosts);
  const hostKeys = await Promise.all(
    nodes.map(async (node) => {
      const key = await knownHosts.expected("127.0.0.1", node.ports.ssh);
      if (key === undefined) throw missing(`The host key of ${nodeReference(node)}`);
      return key;
    }),
  );
  return { privateKey, hostKeys };
}

interface Origin {
  readonly directory: string;
  readonly node: Pick<NodeFacts, "id" | "role" | "index">;
  readonly snapshot: string;
  readonly movesDisks?: boolean;
}

interface MachineCopy {
  readonly directory: string;
  readonly node: NodeFacts;
  readonly place: number;
  readonly hosts: readonly NodeFacts[];
  readonly deadline: Date | undefined;
  readonly publicKey: string;
  /** Run at every boot; see `nameServerScripts`. */
  readonly scripts: readonly string[];
}

export async function copyMachine(origin: Origin, copy: MachineCopy): Promise<void> {
  const from = machineFiles(origin.directory, origin.node);
  const saved = savedFiles(origin.node);
  const { node, place, publicKey, deadline, scripts } = copy;
  const to = machineFiles(copy.directory, node);
  await mkdir(to.folder, { recursive: true, mode: 0o700 });
  try {
    const disk = join(origin.snapshot, saved.disk);
    if (origin.movesDisks === true) await rename(disk, to.disk);
    else await copyFile(disk, to.disk, constants.COPYFILE_FICLONE);
    await copyIfPresent(join(origin.snapshot, saved.variables), to.flash.variables);
    await copyIfPresent(from.flash.program, to.flash.program);
    const hosts = copy.hosts.map((each) => ({
      address: each.privateAddress,
      name: nodeHostname(each),
    }));
    await writeSeed(to.seed, {
      instanceId: (await readInstanceId(from.seed)) ?? origin.node.id,
      hostname: nodeHostname(node),
      place,
      // It gets its host key where no process of the node can read it.
      boot: {
        user: sshUser,
        publicKey,
        hostKey: undefined,
        deadline,
        hosts,
        lingers: true,
        scripts,
      },
    });
  } catch (error) {
    throw copyFailure(error, node, "copied");
  }
}

/** Only some machines have firmware of their own. */
async function copyIfPresent(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE).catch((error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
  });
}

/** With another instance id, cloud-init would set the machine up again when it boots, and give it another host key. */
export const readInstanceId = async (seed: string): Promise<string | undefined> =>
  readOwnJson(join(seed, "meta-data"), read.field("instance-id", read.matching(/^[\w-]{1,64}$/)));
