import { hardwareOf } from "./hardware.ts";
import { assertFreeSpace } from "../../system/files/private-file.ts";
import { ClusterError, type ErrorId } from "../../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeHostname,
  nodeReference,
  nodeCount,
} from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import type { Runtime } from "../../system/runtime.ts";
import type {
  Creation,
  CreationFolder,
  CreationRequest,
  CreationSummary,
  NodeShell,
} from "../contract.ts";
import { correctClock } from "../../ssh/correct-clock.ts";
import { awaitFirstBoot, usualFirstBootLimitMs } from "../shared/first-boot.ts";
import { lockMachines } from "../shared/lock-machines.ts";
import { type NodeFacts, assertIdIsFree, endOf, writeClusterFacts } from "./cluster-facts.ts";
import { type CheckedImage, assertStillChecked, checkImage } from "./images/assert-bootable.ts";
import { type BaseLayer, describeLayers } from "./images/base-layers.ts";
import { obtainImage } from "./images/image-store.ts";
import { nameServerScripts } from "./machines/host-ipv6.ts";
import {
  type LaunchPlan,
  launchMachines,
  lookAtMachines,
  readOwnCluster,
} from "./machines/launch.ts";
import { makeSocketsFolder } from "./machines/private-network.ts";
import type { Accelerator, VmOptions } from "./options.ts";
import { type ResolvedCreation, describePlan } from "./plan.ts";
import { whyTranslated } from "./qemu/accelerator.ts";
import { forgetBrokenAccelerator } from "./qemu/broken-accelerator.ts";
import {
  brokenFailure,
  fallBackNote,
  findBrokenAccelerator,
  prepareRelaunch,
} from "./qemu/fall-back.ts";
import type { Qemu } from "./qemu/qemu.ts";
import { sshUser } from "./records.ts";
import { launchCopies } from "./templates/launch-copies.ts";
import {
  type TemplateRequest,
  obtainTemplate,
  rejectTemplate,
} from "./templates/obtain-template.ts";
import { type Template, templateFiles } from "./templates/template-files.ts";
import { type ClaimedMachines, VmMachines, newNodes, slowLimitMs } from "./vm-machines.ts";

/** The minimum that a node writes to its disk. */
const bytesPerNode = 1e9;

interface VmPlan {
  readonly qemu: Qemu;
  readonly root: string;
  readonly request: CreationRequest<VmOptions>;
  readonly resolved: ResolvedCreation;
}

interface ClaimedCreation extends ClaimedMachines {
  readonly image: CheckedImage;
  facts: ClaimedMachines["facts"];
  accelerator: Accelerator;
  /** The folder of the machines' sockets, once it exists. */
  sockets: string | undefined;
  /** The saved machines from which the new ones are made. Undefined: they boot. */
  template: Template | undefined;
  /** Whether a template has failed these machines already, or would. */
  areBooting: boolean;
}

/** Errors of this computer or of what the user gave it. Machines that boot would meet them too. */
const notOfTemplate: readonly ErrorId[] = [
  "capacity-lacking",
  "image-not-found",
  "machine-not-set-up",
];

/** The system's own errors, such as of a full disk, say nothing against the template either. */
const mayBeOfTemplate = (error: unknown): boolean =>
  error instanceof ClusterError && !notOfTemplate.includes(error.id);

export class VmCreation extends VmMachines<ClaimedCreation> implements Creation {
  readonly summary: CreationSummary;
  readonly #plan: VmPlan;
  /** The ids of the nodes that have let us in, and of those whose first boot is over. */
  readonly #up = new Set<string>();
  readonly #booted = new Set<string>();

  constructor(plan: VmPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.summary = describePlan(plan.request, plan.resolved, runtime.clock);
  }

  override get firstLogin() {
    return {
      ...super.firstLogin,
      finishBoot: async (node: NodeRecord, shell: NodeShell, signal: AbortSignal) =>
        this.#finishBoot(node, shell, signal),
    };
  }

  protected get isSlow(): boolean {
    return (this.state.claimed ?? this.#plan.resolved).accelerator === "tcg";
  }

  async claim({ creationId, directory }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { root, request } = this.#plan;
    const { clusterId, options, counts, variant, webUi, platform } = request;
    await assertIdIsFree(root, clusterId, []);
    const image = await this.#prepareImage(signal);
    const facts = {
      ...(await this.newFacts(creationId, newNodes(counts))),
      variant,
      distribution: options.image === undefined ? request.distribution : "own image",
      counts,
      webUi,
      platform,
    };
    const { accelerator } = this.#plan.resolved;
    const more = { accelerator, sockets: undefined, template: undefined, areBooting: false };
    await this.claimId({ directory, image, facts, ...more }, signal);
  }

  async #prepareImage(signal: AbortSignal): Promise<CheckedImage> {
    const { qemu, root, request, resolved } = this.#plan;
    const path = await obtainImage({ ...this.runtime, signal }, resolved.image);
    const { diskMegabytes } = request.options;
    const image = resolved.ownImage ?? (await checkImage(qemu, { path, diskMegabytes }, signal));
    const hint = "Free some space, or set XDG_STATE_HOME to another folder.";
    await assertFreeSpace(root, nodeCount(this.summary.counts) * bytesPerNode, hint);
    if (this.isSlow) {
      const why = whyTranslated(resolved.choice);
      this.runtime.progress.note(`The machines run under tcg, so booting takes minutes: ${why}.`);
    }
    return image;
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const claimed = this.claimed;
    await assertStillChecked(claimed.image);
    // Copies boot later, if at all, and what gives them names runs when they boot.
    claimed.areBooting ||= (await nameServerScripts()).length > 0;
    claimed.template = await this.#obtainTemplate(claimed, signal);
    using step = this.runtime.progress.start("Start virtual machines");
    await using _ = await lockMachines({ ...this.runtime, signal }, claimed.directory);
    await readOwnCluster(claimed.directory);
    claimed.sockets ??= await makeSocketsFolder(claimed.directory);
    claimed.facts = { ...claimed.facts, base: await this.#describeLayers(claimed, signal) };
    const plan = this.#launchPlan(claimed, { sockets: claimed.sockets, publicKey });
    await writeClusterFacts(claimed.directory, plan.facts);
    const { qemu } = this.#plan;
    const onNode = ({ id }: NodeFacts): void => void this.introduced.add(id);
    if (claimed.template === undefined) await launchMachines(qemu, plan, signal);
    else await launchCopies(qemu, { ...plan, from: claimed.template, onNode }, signal);
    // By now, QEMU has opened it.
    await assertStillChecked(claimed.image);
    step.done();
  }

  async #describeLayers(
    { image, template }: ClaimedCreation,
    signal: AbortSignal,
  ): Promise<readonly BaseLayer[]> {
    const saved = template && templateFiles(template.folder);
    const paths = [image.path, ...(saved === undefined ? [] : [saved.disk])];
    return describeLayers(paths, this.runtime.environment, signal);
  }

  async #obtainTemplate(
    claimed: ClaimedCreation,
    signal: AbortSignal,
  ): Promise<Template | undefined> {
    const request = this.#templateRequest(claimed);
    return request && (await obtainTemplate({ ...this.runtime, signal }, this.#plan.qemu, request));
  }

  /** On macOS, nobody has tried whether machines can be copied. */
  #templateRequest({
    directory,
    facts,
    image,
    accelerator,
    areBooting,
  }: ClaimedCreation): TemplateRequest | undefined {
    const { request, resolved } = this.#plan;
    const { options } = request;
    if (options.templates === undefined || accelerator === "hvf" || areBooting) return undefined;
    const { firmware, isSandboxed } = resolved;
    const mostBytes = options.templates.mostMegabytes * 1024 ** 2;
    const limitMs = this.isSlow ? slowLimitMs : usualFirstBootLimitMs;
    const { creationId } = facts;
    return {
      options,
      accelerator,
      firmware,
      image,
      directory,
      isSandboxed,
      limitMs,
      creationId,
      mostBytes,
    };
  }

  #launchPlan(
    { directory, facts, image, accelerator, template }: ClaimedCreation,
    { sockets, publicKey }: { readonly sockets: string; readonly publicKey: string },
  ): LaunchPlan {
    const { request, resolved } = this.#plan;
    const hosts = facts.nodes.map((node) => ({
      address: node.privateAddress,
      name: nodeHostname(node),
    }));
    const { isSandboxed } = resolved;
    const { offline } = request.options;
    const hasGenerationId = true;
    return {
      directory,
      facts: {
        ...facts,
        machines: {
          accelerator,
          isSandboxed,
          ...hardwareOf(request.options),
          hasGenerationId,
          isOffline: offline,
          template: template?.name,
        },
      },
      options: { ...request.options, hasGenerationId, isOffline: offline },
      accelerator,
      isSandboxed,
      isOfTemplate: template !== undefined,
      firmware: resolved.firmware,
      image,
      boot: { user: sshUser, publicKey, deadline: endOf(facts).expiresAt, hosts, lingers: true },
      firstHostKeys: this.hostKeys,
      sockets: { folder: sockets, count: facts.nodes.length },
      clock: this.runtime.clock,
    };
  }

  /**
   * If copies of a template fail, boots all machines; if the hardware accelerator breaks, starts
   * all again under tcg. Only until the first machine has booted.
   */
  async recover(failure: unknown, signal: AbortSignal): Promise<boolean> {
    const claimed = this.claimed;
    if (await this.#boots(claimed, failure, signal)) return true;
    const { forced } = this.#plan.resolved.choice;
    const broken = await findBrokenAccelerator(claimed, this.runtime);
    if (broken === undefined) return false;
    if (forced !== undefined || this.#booted.size > 0)
      throw brokenFailure(failure, broken, forced !== undefined);
    this.runtime.progress.note(fallBackNote(broken));
    claimed.facts = await this.#prepareRelaunch(claimed, signal);
    claimed.accelerator = "tcg";
    return true;
  }

  async look(): Promise<ClusterRecord> {
    const { architecture } = this.#plan.qemu;
    const look = { architecture, clock: this.runtime.clock, up: this.#up };
    const cluster = await lookAtMachines(this.claimed.directory, look);
    return this.claimed.template === undefined ? cluster : this.introducedOnly(cluster);
  }

  async #boots(claimed: ClaimedCreation, error: unknown, signal: AbortSignal): Promise<boolean> {
    const { template } = claimed;
    const request = this.#templateRequest(claimed);
    if (template === undefined || request === undefined || this.#booted.size > 0) return false;
    if (!mayBeOfTemplate(error)) return false;
    claimed.facts = await this.#prepareRelaunch(claimed, signal);
    await rejectTemplate({ ...this.runtime, signal }, this.#plan.qemu, {
      request,
      template,
      error,
    });
    claimed.areBooting = true;
    return true;
  }

  async #prepareRelaunch(
    { directory }: ClaimedCreation,
    signal: AbortSignal,
  ): Promise<ClaimedCreation["facts"]> {
    this.introduced.clear();
    this.#up.clear();
    return prepareRelaunch({ ...this.runtime, signal }, directory);
  }

  async #finishBoot(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void> {
    const { facts } = this.claimed;
    this.#up.add(node.id);
    const name = nodeReference(node);
    // A boot begins at a whole second, and what a copy's agent sets is late by the time until then.
    await correctClock({ ...this.runtime, signal }, shell, name);
    const hasDeadline = facts.expiresAt !== undefined;
    const machine = {
      name,
      hasDeadline,
      limitMs: this.isSlow ? slowLimitMs : usualFirstBootLimitMs,
    };
    const complaints = await awaitFirstBoot(shell, machine, signal);
    if (complaints !== undefined) {
      this.runtime.progress.detail(1, `${name}: cloud-init reported:\n${outside(complaints)}`);
    }
    this.#booted.add(node.id);
    if (this.#booted.size === facts.nodes.length) await this.#finish();
  }

  /** Called when all machines run and are connected. */
  async #finish(): Promise<void> {
    const { forced } = this.#plan.resolved.choice;
    if (forced !== undefined && forced !== "tcg")
      await forgetBrokenAccelerator(this.runtime.environment);
  }
}
