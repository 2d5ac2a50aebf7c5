import { hardwareOf, hardwareText } from "../hardware.ts";
import { hasErrorId, messageOf } from "../../../errors.ts";
import { type ClusterRecord, nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { Clock, Runtime } from "../../../system/runtime.ts";
import type { CopyRequest, Creation, CreationFolder, CreationSummary } from "../../contract.ts";
import { deadlineSetup } from "../../shared/first-boot.ts";
import { describeOrigin, outsideText, wayOutText } from "../../shared/describe-copy.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import {
  type ClusterFacts,
  type MachineSettings,
  type NodeFacts,
  type StoredCluster,
  endOf,
  writeClusterFacts,
} from "../cluster-facts.ts";
import { describeLayers, layersBelow } from "../images/base-layers.ts";
import { connectAlone } from "../machines/forwards.ts";
import { nameServerScripts } from "../machines/host-ipv6.ts";
import { findFreePorts, lookAtMachines, openPorts, readOwnCluster } from "../machines/launch.ts";
import { forwardAddress } from "../machines/machine-arguments.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { removeSockets } from "../machines/private-network.ts";
import { prepareRelaunch } from "../qemu/fall-back.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { continueMachines } from "../snapshots/restore-machines.ts";
import { markUsed, templateNamed } from "../templates/template-files.ts";
import { type ClaimedMachines, VmMachines } from "../vm-machines.ts";
import type { CopyOrigin, OpenOrigin } from "./copy-origin.ts";
import { replaceKeys, systemKeyLocation } from "./replace-keys.ts";
import { copyMachine } from "./resolve-copy.ts";

const copiesAtOnce = 4;
const loginsAtOnce = 20;

export interface CopyPlan {
  readonly qemu: Qemu;
  readonly root: string;
  readonly request: Pick<CopyRequest, "clusterId" | "lifetimeMs">;
  readonly origin: CopyOrigin;
}

type OldKeys = Pick<OpenOrigin, "privateKey" | "hostKeys">;

interface Start {
  readonly machines: MachineSettings;
  readonly whyBoot: string | undefined;
}

/**
 * A cluster that continues from another one's snapshot. Its machines have the same names, hardware
 * addresses and private addresses as the source's, which harms nobody, since each cluster's network
 * is its own. See Creation.
 */
export class VmCopy extends VmMachines<ClaimedMachines> implements Creation {
  readonly summary: CreationSummary;
  readonly #plan: CopyPlan;
  #start: Start;

  constructor(plan: CopyPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.#start = plan.origin;
    this.summary = describeCopy(plan, runtime.clock);
  }

  protected get isSlow(): boolean {
    const { machines, whyBoot } = this.#start;
    return whyBoot !== undefined && machines.accelerator === "tcg";
  }

  async claim({ creationId, directory }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { facts: source, nodes } = this.#plan.origin;
    const { variant, distribution, counts, webUi, platform } = source;
    const { machines } = this.#start;
    const facts = {
      variant,
      distribution,
      counts,
      webUi,
      platform,
      machines,
      ...(await this.newFacts(creationId, nodes)),
    };
    await this.claimId({ directory, facts }, signal);
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const old = await this.#startMachines(publicKey, signal);
    using step = this.runtime.progress.start("Replace the keys");
    await this.#replaceKeys(publicKey, old, signal);
    const { directory } = this.claimed;
    const { facts } = await readOwnCluster(directory);
    await openPorts({ directory, facts, isOfTemplate: this.#isOfTemplate }, signal);
    step.done();
  }

  get #isOfTemplate(): boolean {
    return this.#start.machines.template !== undefined;
  }

  /** Resolves with the keys that the machines know. */
  async #startMachines(publicKey: string, signal: AbortSignal): Promise<OldKeys> {
    const { clock, progress } = this.runtime;
    const { directory } = this.claimed;
    const { qemu, origin } = this.#plan;
    const { machines, whyBoot } = this.#start;
    const boots = whyBoot !== undefined;
    await using _ = await lockMachines({ ...this.runtime, signal }, directory);
    const { facts } = await readOwnCluster(directory);
    await using files = await origin.open(directory, signal);
    await this.#markTemplate();
    if (boots) progress.note(`The nodes boot from their disks: ${whyBoot}.`);
    using step = progress.start(boots ? "Start virtual machines" : "Continue virtual machines");
    const cluster = { directory, facts: { ...facts, machines } };
    await writeClusterFacts(directory, cluster.facts);
    await this.#copyMachines(cluster, { files, publicKey }, signal);
    const base = origin.facts.base ?? (await this.#layersOf(cluster, signal));
    const based = { directory, facts: { ...cluster.facts, base } };
    await writeClusterFacts(directory, based.facts);
    const plan = {
      cluster: based,
      folder: files.folder,
      saved: { machines },
      clock,
      boots,
      opensPortsLater: true,
    };
    await continueMachines(qemu, plan, signal);
    step.done();
    return { privateKey: files.privateKey, hostKeys: files.hostKeys };
  }

  async #layersOf(
    { directory, facts }: StoredCluster,
    signal: AbortSignal,
  ): Promise<ClusterFacts["base"]> {
    const below = async (node: NodeFacts) =>
      layersBelow(this.#plan.qemu, machineFiles(directory, node), signal);
    const paths = await mapConcurrently(facts.nodes, copiesAtOnce, below, signal);
    return describeLayers(paths.flat(), this.runtime.environment, signal);
  }

  async #copyMachines(
    { directory, facts }: StoredCluster,
    { files, publicKey }: { readonly files: OpenOrigin; readonly publicKey: string },
    signal: AbortSignal,
  ): Promise<void> {
    const hosts = facts.nodes;
    const scripts = await nameServerScripts();
    const copy = async (node: NodeFacts, place: number): Promise<void> => {
      const origin = {
        directory: files.directory,
        node,
        snapshot: files.folder,
        movesDisks: files.movesDisks,
      };
      await copyMachine(origin, {
        directory,
        node,
        place,
        hosts,
        publicKey,
        scripts,
        deadline: endOf(facts).expiresAt,
      });
    };
    await mapConcurrently(facts.nodes, copiesAtOnce, copy, signal);
  }

  async #replaceKeys(
    publicKey: string,
    { privateKey, hostKeys }: OldKeys,
    signal: AbortSignal,
  ): Promise<void> {
    const deadlineMs = this.runtime.clock.now() + this.firstLogin.limitMs;
    const cluster = await this.#look();
    const { expiresAt } = cluster;
    const hasDeadline = expiresAt !== undefined || this.#plan.origin.facts.expiresAt !== undefined;
    const replace = async (node: ClusterRecord["nodes"][number]): Promise<void> => {
      const place = this.#plan.origin.nodes.findIndex(
        (each) => nodeReference(each) === nodeReference(node),
      );
      const hostKey = hostKeys[place];
      if (hostKey === undefined) throw new RangeError(`The source has no ${nodeReference(node)}`);
      const { folder } = machineFiles(this.claimed.directory, node);
      const lone = {
        folder,
        name: nodeReference(node),
        address: forwardAddress({ isOfTemplate: this.#isOfTemplate }),
      };
      await replaceKeys(
        { ...this.runtime, signal },
        {
          node,
          connect: async (inner) => {
            const [port = 0] = await findFreePorts(1);
            return await connectAlone({ ...lone, port, clock: this.runtime.clock }, inner);
          },
          old: { privateKey, hostKey },
          publicKey,
          hostKey: this.hostKeys.of(node),
          location: systemKeyLocation,
          continues: this.#start.whyBoot === undefined,
          setDeadline: hasDeadline ? deadlineSetup(expiresAt) : "",
          deadlineMs,
        },
      );
      this.introduced.add(node.id);
    };
    await mapConcurrently(cluster.nodes, loginsAtOnce, replace, signal);
  }

  /** Disks in the snapshot of a cluster of copies are layers on the template's. */
  async #markTemplate(): Promise<void> {
    const { template } = this.#start.machines;
    const { facts, directory } = this.claimed;
    if (template !== undefined)
      await markUsed(
        templateNamed(this.runtime.environment, template),
        facts.creationId,
        directory,
      );
  }

  /** If QEMU can't load the memory of a file although it should, the machines boot. */
  async recover(failure: unknown, signal: AbortSignal): Promise<boolean> {
    const { machines, whyBoot } = this.#start;
    const { bootAccelerator } = this.#plan.origin;
    const isOfQemu = hasErrorId(failure, "engine-failed") || hasErrorId(failure, "machine-failed");
    if (
      bootAccelerator === undefined ||
      whyBoot !== undefined ||
      !isOfQemu ||
      this.introduced.size > 0
    )
      return false;
    await prepareRelaunch({ ...this.runtime, signal }, this.claimed.directory);
    await removeSockets(this.claimed.directory);
    this.runtime.progress.detail(1, messageOf(failure));
    const accelerator = bootAccelerator();
    this.#start = {
      machines: { ...machines, accelerator },
      whyBoot: "QEMU cannot continue from their memory",
    };
    return true;
  }

  async look(): Promise<ClusterRecord> {
    return this.introducedOnly(await this.#look());
  }

  async #look(): Promise<ClusterRecord> {
    const { architecture } = this.#plan.qemu;
    return lookAtMachines(this.claimed.directory, {
      architecture,
      clock: this.runtime.clock,
      up: this.introduced,
    });
  }
}

export function describeCopy({ request, origin }: CopyPlan, clock: Clock) {
  const { accelerator, isOffline = false } = origin.machines;
  const hardware = hardwareOf(origin.machines);
  const boots = origin.whyBoot === undefined ? [] : ([["Boots", origin.whyBoot]] as const);
  return describeOrigin(
    request,
    {
      ...origin.facts,
      ...origin,
      engine: `QEMU ${origin.qemuVersion}, ${accelerator}`,
      lines: [
        ...boots,
        ["Per machine", hardwareText(hardware)],
        ["Network", `a private network of its own${wayOutText(isOffline, outsideText)}`],
        ["Reached at", "ports of 127.0.0.1"],
      ],
      facts: {
        boots: boots.length > 0,
        engine: { name: "qemu", version: origin.qemuVersion, accelerator },
        ...hardware,
        ...(isOffline && { offline: true }),
      },
    },
    clock,
  );
}
