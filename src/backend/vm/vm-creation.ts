import { ClusterError } from "../../errors.ts";
import {
  type ClusterRecord,
  type Counts,
  type NodeRecord,
  nodeCount,
  nodeReference,
  roles,
} from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { freeSpaceProblem, systemTemporaryFolder } from "../../system/files/private-file.ts";
import type { Runtime } from "../../system/runtime.ts";
import type {
  Creation,
  CreationFolder,
  CreationPace,
  CreationRequest,
  CreationSummary,
  NodeShell,
} from "../contract.ts";
import { awaitFirstBoot, usualFirstBootLimitMs } from "../shared/first-boot.ts";
import { lockMachines } from "../shared/lock-machines.ts";
import { assertIdIsFree, writeClusterFacts } from "./cluster-facts.ts";
import { type ImageFacts, assertDiskIsLargeEnough, obtainImage, readImageFacts } from "./images/image-store.ts";
import { privateAddress } from "./ip-detect.ts";
import { type LaunchPlan, hostname, launchMachines, lookAtMachines, readOwnCluster } from "./machines/launch.ts";
import { recordSockets, removeSockets } from "./machines/private-network.ts";
import type { Accelerator, VmOptions } from "./options.ts";
import { type ResolvedCreation, describePlan } from "./plan.ts";
import { whyTranslated } from "./qemu/accelerator.ts";
import { forgetBrokenAccelerator } from "./qemu/broken-accelerator.ts";
import { brokenFailure, fallBackNote, findBrokenAccelerator, prepareTranslation } from "./qemu/fall-back.ts";
import type { Qemu } from "./qemu/qemu.ts";
import { sshUser } from "./records.ts";
import { type ClaimedMachines, VmMachines, vmPace } from "./vm-machines.ts";

/**
 * Translated code boots ten times slower, and all machines share this computer. The limits cover the time until the
 * first login and the time from then on.
 */
const slowLimitMs = 40 * 60_000;
/** The minimum that a node writes to its disk. */
const bytesPerNode = 1e9;

export interface VmPlan {
  readonly qemu: Qemu;
  /** The folder of this machine's creations. */
  readonly root: string;
  readonly request: CreationRequest<VmOptions>;
  readonly resolved: ResolvedCreation;
}

interface ClaimedCreation extends ClaimedMachines {
  readonly image: ImageFacts;
  facts: ClaimedMachines["facts"];
  accelerator: Accelerator;
  /** The folder of the machines' sockets, once it exists. */
  sockets: string | undefined;
}

/** See Creation. */
export class VmCreation extends VmMachines<ClaimedCreation> implements Creation {
  readonly summary: CreationSummary;
  readonly nodeCount: number;
  readonly #plan: VmPlan;
  readonly #booted = new Set<string>();

  constructor(plan: VmPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.nodeCount = nodeCount(plan.request.counts);
    this.summary = describePlan(plan.request, plan.resolved);
  }

  get pace(): CreationPace {
    return { ...vmPace, ...(this.#isSlow && { loginLimitMs: slowLimitMs }) };
  }

  get #isSlow(): boolean {
    return (this.state.claimed ?? this.#plan.resolved).accelerator === "tcg";
  }

  async claim({ creationId, directory }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { root, request } = this.#plan;
    const { clusterId, options, counts, variant, webUi } = request;
    await assertIdIsFree(root, clusterId, []);
    const image = await this.#prepareImage(signal);
    const facts = {
      ...(await this.newFacts(creationId, nodesOf(counts))),
      variant,
      distribution: options.image === undefined ? request.distribution : "own image",
      counts,
      webUi,
    };
    const { accelerator } = this.#plan.resolved;
    await this.claimId({ directory, image, facts, accelerator, sockets: undefined }, signal);
  }

  async #prepareImage(signal: AbortSignal): Promise<ImageFacts> {
    const { qemu, root, request, resolved } = this.#plan;
    const image = await readImageFacts(qemu, await obtainImage(resolved.image, this.runtime, signal), signal);
    assertDiskIsLargeEnough(image, request.options.diskMegabytes);
    await assertSpace(root, nodeCount(request.counts));
    if (this.#isSlow) {
      const why = whyTranslated(resolved.choice);
      this.runtime.progress.note(`The machines run under tcg, so booting takes minutes: ${why}.`);
    }
    return image;
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const made = this.claimed;
    using step = this.runtime.progress.start("Start virtual machines");
    await using _ = await lockMachines(made.directory, this.runtime, signal);
    await readOwnCluster(made.directory);
    made.sockets ??= await makeSocketFolder(made.directory);
    const plan = this.#launchPlan(made, { sockets: made.sockets, publicKey });
    await writeClusterFacts(made.directory, plan.facts);
    await launchMachines(this.#plan.qemu, plan, signal);
    step.done();
  }

  #launchPlan(
    { directory, facts, image, accelerator }: ClaimedCreation,
    { sockets, publicKey }: { readonly sockets: string; readonly publicKey: string },
  ): LaunchPlan {
    const { request, resolved } = this.#plan;
    const hosts = facts.nodes.map((node) => ({ address: node.privateAddress, name: hostname(node) }));
    const { isSandboxed } = resolved;
    const { memoryMegabytes, cpus } = request.options;
    return {
      directory,
      facts: { ...facts, machines: { accelerator, isSandboxed, memoryMegabytes, cpus } },
      options: request.options,
      accelerator,
      isSandboxed,
      firmware: resolved.firmware,
      image,
      boot: { user: sshUser, publicKey, deadline: undefined, hosts, lingers: true },
      firstHostKeys: this.hostKeys,
      sockets: { folder: sockets, count: facts.nodes.length },
      clock: this.runtime.clock,
    };
  }

  /** If the hardware accelerator breaks before the first machine has booted, starts all machines again under tcg. */
  async recover(failure: unknown, signal: AbortSignal): Promise<boolean> {
    const made = this.claimed;
    const { forced } = this.#plan.resolved.choice;
    const broken = await findBrokenAccelerator(made, this.runtime);
    if (broken === undefined) return false;
    if (forced !== undefined || this.#booted.size > 0) throw brokenFailure(failure, broken, forced !== undefined);
    this.runtime.progress.note(fallBackNote(broken));
    made.facts = await prepareTranslation(made.directory, this.runtime, signal);
    made.accelerator = "tcg";
    return true;
  }

  async look(): Promise<ClusterRecord> {
    return lookAtMachines(this.claimed.directory, this.#plan.qemu.architecture);
  }

  async finishBoot(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void> {
    const { directory, facts } = this.claimed;
    const name = nodeReference(node);
    const machine = { name, hasDeadline: false, limitMs: this.#isSlow ? slowLimitMs : usualFirstBootLimitMs };
    const complaints = await awaitFirstBoot(shell, machine, signal);
    if (complaints !== undefined) {
      this.runtime.progress.detail(1, `${name}: cloud-init reported:\n${outside(complaints)}`);
    }
    this.#booted.add(node.id);
    if (this.#booted.size === facts.nodes.length) await this.#finish(directory);
  }

  /** Called when all machines run and are connected. */
  async #finish(directory: string): Promise<void> {
    const { forced } = this.#plan.resolved.choice;
    if (forced !== undefined && forced !== "tcg") await forgetBrokenAccelerator(this.runtime.environment);
    await removeSockets(directory);
  }
}

/**
 * Creates the folder of the sockets. It is removed when all nodes have booted, because they are connected by then, or
 * else with the creation.
 */
async function makeSocketFolder(directory: string): Promise<string> {
  const folder = await systemTemporaryFolder();
  try {
    await recordSockets(directory, folder.path);
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
  return folder.path;
}

async function assertSpace(folder: string, count: number): Promise<void> {
  const problem = await freeSpaceProblem(folder, count * bytesPerNode);
  if (problem === undefined) return;
  throw new ClusterError("capacity-lacking", problem, {
    hint: "Free some space, or set XDG_STATE_HOME to another folder.",
  });
}

const nodesOf = (counts: Counts) =>
  roles
    .flatMap((role) => Array.from({ length: counts[role] }, (_, index) => ({ role, index })))
    .map((name, place) => ({ ...name, privateAddress: privateAddress(place) }));
