import { join } from "node:path";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { roles } from "../../model/cluster-record.ts";
import type { Connection } from "../../ssh/connection.ts";
import { systemTemporaryFolder } from "../../system/temporary-folder.ts";
import { readBootId } from "../../system/boot-id.ts";
import { freeSpaceProblem } from "../../system/free-space.ts";
import { acquireProcessLock } from "../../system/process-lock.ts";
import { ClusterError } from "../../errors.ts";
import { version } from "../../version.ts";
import type { ProvisionRequest } from "../backend.ts";
import { awaitFirstBoot, usualFirstBootLimitMs } from "../first-boot.ts";
import { nodeCount } from "../cluster-shape.ts";
import { type FirstHostKeys, hostKeyPerNode } from "../first-host-keys.ts";
import { launchAndRaise } from "../launch-and-raise.ts";
import type { LocalProvisioning } from "../local-backend.ts";
import { openIntroduction } from "../meet-node.ts";
import { removeAbandoned } from "../remove-abandoned.ts";
import { runCreation } from "../run-creation.ts";
import { type ClusterFacts, type NodeFacts, readClusters, writeClusterFacts } from "./cluster-facts.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import { assertDiskIsLargeEnough, readImageFacts } from "./disk.ts";
import { findFreePorts } from "./free-ports.ts";
import { obtainImage } from "./image-store.ts";
import { privateAddress } from "./ip-detect.ts";
import { hostname, launchMachines, toPorts } from "./launch.ts";
import type { Making } from "./making.ts";
import { noteWires } from "./private-network.ts";
import type { Qemu } from "./qemu.ts";
import { sshUser } from "./records.ts";
import { lockMachines, removeCreation } from "./remove-creation.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import { vmRollBack } from "./roll-back.ts";
import type { VmOptions } from "./vm-options.ts";
import { readOwnCluster, watchMachines } from "./watch-machines.ts";

/** Between two looks at the machines. */
const longestPauseMs = 1_000;
/** Translated code boots ten times slower, and all machines share this computer: both until we are let in, and from then on. */
const slowLimitMs = 40 * 60_000;
/** What a node writes to its disk at the least. */
const bytesPerNode = 1e9;

export interface VmProvisioning extends LocalProvisioning<VmOptions, ResolvedCreation, Making> {
  readonly qemu: Qemu;
}

/** See Backend.provision. */
export async function provision(work: VmProvisioning, signal: AbortSignal): Promise<ClusterRecord> {
  return runCreation(
    {
      request: work.request,
      progress: work.surroundings.progress,
      prepare: async (inner) => prepare(work, inner),
      make: async (making, inner) => make(work, making, inner),
      rollBackOf: (making) => vmRollBack(work, making),
    },
    signal,
  );
}

async function prepare(work: VmProvisioning, signal: AbortSignal): Promise<Making> {
  const { qemu, request, root, surroundings } = work;
  const { clusterId, directory, creation } = request;
  const { clock, progress } = surroundings;
  const remove = async (abandoned: string): Promise<undefined> => {
    await removeCreation(abandoned, clock, signal);
    return undefined;
  };
  await removeAbandoned({ root, clusterId }, async (abandoned) => remove(abandoned.directory), progress);
  const [resolved, clusters] = await Promise.all([work.resolve(signal), readClusters(root)]);
  assertIdIsFree(clusters, clusterId, []);
  const image = await readImageFacts(qemu, await obtainImage(resolved.image, surroundings, signal), signal);
  assertDiskIsLargeEnough(image, creation.diskMegabytes);
  await assertSpace(root, nodeCount(request.counts));
  if (resolved.accelerator === "tcg") {
    progress.note("No hardware acceleration works here: the machines are translated, and take minutes to boot.");
  }
  const making: Making = { clusterId, directory, resolved, image, isTouched: false };
  work.onMaking(making);
  return making;
}

async function assertSpace(folder: string, count: number): Promise<void> {
  const problem = await freeSpaceProblem(folder, count * bytesPerNode);
  if (problem === undefined) return;
  throw new ClusterError("capacity-lacking", problem, {
    hint: "Make room, or name another folder with XDG_STATE_HOME.",
  });
}

/** Nodes are met while later ones are still being started. */
async function make(work: VmProvisioning, making: Making, signal: AbortSignal): Promise<ClusterRecord> {
  const { qemu, request, surroundings } = work;
  const { directory, resolved, image } = making;
  const firstHostKeys = hostKeyPerNode();
  const meet = await introduction(work, { resolved, firstHostKeys });
  using step = surroundings.progress.start("Start virtual machines");
  const facts = await register(work, making, signal);
  // Gone when all nodes have been met: by then they are connected.
  await using wires = await systemTemporaryFolder();
  const hosts = facts.nodes.map((node) => ({ address: node.privateAddress, name: hostname(node) }));
  const boot = { user: sshUser, publicKey: request.publicKey, deadline: undefined, hosts };
  const plan = {
    directory,
    facts,
    creation: request.creation,
    accelerator: resolved.accelerator,
    firmware: resolved.firmware,
    image,
    boot,
    firstHostKeys,
    wires: { folder: wires.path, count: facts.nodes.length },
    clock: surroundings.clock,
  };
  const launch = async (inner: AbortSignal): Promise<void> => {
    await using _ = await lockMachines(directory, surroundings.clock, inner);
    await readOwnCluster(directory);
    await noteWires(directory, plan.wires);
    await launchMachines(qemu, plan, inner);
    step.done();
  };
  const look = async (): Promise<ClusterRecord> => watchMachines(directory, qemu.architecture);
  return await launchAndRaise(
    launch,
    { count: nodeCount(request.counts), longestPauseMs, look, meet },
    surroundings,
    signal,
  );
}

async function introduction(
  { request, surroundings, onNode }: VmProvisioning,
  { resolved, firstHostKeys }: { readonly resolved: ResolvedCreation; readonly firstHostKeys: FirstHostKeys },
): ReturnType<typeof openIntroduction> {
  const { directory, connections, deadlineMs } = request;
  const isSlow = resolved.accelerator === "tcg";
  const firstBootLimitMs = isSlow ? slowLimitMs : usualFirstBootLimitMs;
  return openIntroduction(
    {
      directory,
      connections,
      firstHostKeys,
      deadlineMs,
      ...(isSlow && { loginLimitMs: slowLimitMs }),
      firstBoot: async (connection: Connection, name: string, inner: AbortSignal) => {
        const machine = { name, hasDeadline: false, limitMs: firstBootLimitMs };
        const complaints = await awaitFirstBoot(connection, machine, inner);
        if (complaints !== undefined) surroundings.progress.detail(1, `${name}: cloud-init complained:\n${complaints}`);
      },
      silence: async () => Promise.resolve(undefined),
      onNode,
    },
    surroundings,
  );
}

/** Takes the cluster's id for this creation, and writes down what will be made before it is. */
async function register(
  { request, root, surroundings }: VmProvisioning,
  making: Making,
  signal: AbortSignal,
): Promise<Omit<ClusterFacts, "schemaVersion">> {
  const { clusterId, creationId, creation, counts, variant, webScheme } = request;
  const facts = {
    clusterId,
    creationId,
    variant,
    distribution: creation.image === undefined ? request.distribution : "own image",
    counts,
    webScheme,
    createdAt: new Date(surroundings.clock.now()).toISOString(),
    createdBy: version,
    bootId: await readBootId(),
    nodes: await planNodes(request),
  };
  const onWait = (): void => {};
  await using _ = await acquireProcessLock(join(root, ".lock"), { clock: surroundings.clock, onWait }, signal);
  assertIdIsFree(await readClusters(root), clusterId, []);
  making.isTouched = true;
  await writeClusterFacts(making.directory, facts);
  return facts;
}

async function planNodes({
  counts,
  creationId,
}: Pick<ProvisionRequest<VmOptions>, "counts" | "creationId">): Promise<readonly NodeFacts[]> {
  const names = roles.flatMap((role) => Array.from({ length: counts[role] }, (_, index) => ({ role, index })));
  const ports = await findFreePorts(names.length * 3);
  return names.map(({ role, index }, place) => ({
    id: `vm-${creationId.slice(0, 8)}-${place}`,
    role,
    index,
    privateAddress: privateAddress(place),
    ports: toPorts(ports.slice(place * 3)),
  }));
}
