import { ClusterError } from "../../../errors.ts";
import { type ClusterRecord, nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import type { Clock, Runtime } from "../../../system/runtime.ts";
import type { CopyRequest, Creation, CreationFolder, CreationSummary } from "../../contract.ts";
import { deadlineSetup } from "../../shared/deadline.ts";
import { describeCopy } from "../../shared/describe-copy.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { type NodeFacts, type StoredCluster, endOf } from "../cluster-facts.ts";
import { lookAtMachines, readOwnCluster } from "../machines/launch.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { continueMachines } from "../snapshots/restore-machines.ts";
import { factsText, readSnapshotFacts } from "../snapshots/snapshot-files.ts";
import { markUsed, templateNamed } from "../templates/template-files.ts";
import { type ClaimedMachines, VmMachines, vmPace } from "../vm-machines.ts";
import { replaceKeys, systemKeyLocation } from "./replace-keys.ts";
import { type ResolvedCopy, copyMachine } from "./resolve-copy.ts";

const copiesAtOnce = 4;
const loginsAtOnce = 20;

export interface CopyPlan {
  readonly qemu: Qemu;
  /** The folder of this machine's creations. */
  readonly root: string;
  readonly request: CopyRequest;
  readonly resolved: ResolvedCopy;
}

/**
 * A cluster that continues from another one's snapshot. Its machines have the same names, hardware addresses and private addresses as the source's,
 * which harms nobody, since each cluster's network is its own. See Creation.
 */
export class VmCopy extends VmMachines<ClaimedMachines> implements Creation {
  readonly summary: CreationSummary;
  readonly nodeCount: number;
  readonly pace = vmPace;
  readonly #plan: CopyPlan;

  constructor(plan: CopyPlan, runtime: Runtime) {
    super(plan, runtime);
    this.#plan = plan;
    this.nodeCount = plan.resolved.source.facts.nodes.length;
    this.summary = describe(plan.request, plan.resolved, runtime.clock);
  }

  async claim({ creationId, directory }: CreationFolder, signal: AbortSignal): Promise<void> {
    const { source, saved } = this.#plan.resolved;
    const { nodes } = source.facts;
    const facts = { ...source.facts, ...(await this.newFacts(creationId, nodes)), machines: saved.machines };
    await this.claimId({ directory, facts }, signal);
  }

  async launch(publicKey: string, signal: AbortSignal): Promise<void> {
    const { clock, progress } = this.runtime;
    const { directory } = this.claimed;
    {
      // Nobody may delete the snapshot meanwhile.
      await using _source = await lockMachines(this.#plan.request.source.directory, this.runtime, signal);
      await using _own = await lockMachines(directory, this.runtime, signal);
      await this.#assertUnchanged();
      await this.#markTemplate();
      using step = progress.start("Continue virtual machines");
      const cluster = await readOwnCluster(directory);
      await this.#copyMachines(cluster, publicKey, signal);
      const { snapshot, saved } = this.#plan.resolved;
      await continueMachines(this.#plan.qemu, { cluster, folder: snapshot.folder, saved, clock }, signal);
      step.done();
    }
    using step = progress.start("Replace the keys");
    await this.#replaceKeys(publicKey, signal);
    step.done();
  }

  async #copyMachines({ directory, facts }: StoredCluster, publicKey: string, signal: AbortSignal): Promise<void> {
    const { source, snapshot } = this.#plan.resolved;
    const hosts = facts.nodes;
    const copy = async (node: NodeFacts, place: number): Promise<void> => {
      const origin = { directory: source.directory, node, snapshot: snapshot.folder };
      const firstHostKey = this.hostKeys.of(node);
      const deadline = endOf(facts).expiresAt;
      await copyMachine(origin, { directory, node, place, hosts, publicKey, firstHostKey, deadline });
    };
    await mapConcurrently(facts.nodes, copiesAtOnce, copy, signal);
  }

  async #replaceKeys(publicKey: string, signal: AbortSignal): Promise<void> {
    const { source, privateKey, hostKeys } = this.#plan.resolved;
    const deadlineMs = this.runtime.clock.now() + this.pace.loginLimitMs;
    const cluster = await lookAtMachines(this.claimed.directory, this.#plan.qemu.architecture);
    const { expiresAt } = cluster;
    const hasDeadline = expiresAt !== undefined || source.facts.expiresAt !== undefined;
    const replace = async (node: ClusterRecord["nodes"][number]): Promise<void> => {
      const place = source.facts.nodes.findIndex((each) => nodeReference(each) === nodeReference(node));
      const hostKey = hostKeys[place];
      if (hostKey === undefined) throw new RangeError(`The source has no ${nodeReference(node)}`);
      await replaceKeys(
        {
          node,
          old: { privateKey, hostKey },
          publicKey,
          firstHostKey: this.hostKeys.of(node),
          location: systemKeyLocation,
          setsClock: true,
          setDeadline: hasDeadline ? deadlineSetup(expiresAt) : "",
          deadlineMs,
        },
        this.runtime,
        signal,
      );
      this.introduced.add(node.id);
    };
    await mapConcurrently(cluster.nodes, loginsAtOnce, replace, signal);
  }

  /** Disks in the snapshot of a cluster of copies are layers on the template's. */
  async #markTemplate(): Promise<void> {
    const { template } = this.#plan.resolved.saved.machines;
    const { facts, directory } = this.claimed;
    if (template !== undefined)
      await markUsed(templateNamed(this.runtime.environment, template), facts.creationId, directory);
  }

  /** The plan checked these files, perhaps minutes ago. */
  async #assertUnchanged(): Promise<void> {
    const { request, resolved } = this.#plan;
    const facts = await readSnapshotFacts(resolved.snapshot.folder);
    if (facts !== undefined && factsText(facts) === factsText(resolved.saved)) return;
    const { source, snapshot } = request;
    throw new ClusterError(
      "snapshot-not-found",
      `The snapshot "${snapshot}" of cluster "${source.id}" was deleted or made again meanwhile.`,
      { hint: "Try again.", facts: { cluster: source.id, snapshot } },
    );
  }

  async look(): Promise<ClusterRecord> {
    return this.introducedOnly(await lookAtMachines(this.claimed.directory, this.#plan.qemu.architecture));
  }
}

/** Describes what a copy would create, for people and as data. */
function describe(
  request: CopyRequest,
  { source, saved }: Pick<ResolvedCopy, "source" | "saved">,
  clock: Clock,
): CreationSummary {
  const { accelerator, memoryMegabytes, cpus } = saved.machines;
  return describeCopy(
    request,
    {
      createdAt: saved.createdAt,
      counts: source.facts.counts,
      engine: `QEMU ${saved.qemuVersion}, ${accelerator}`,
      lines: [
        ["Per machine", `${memoryMegabytes} MB of memory, ${cpus} CPUs`],
        ["Network", "a private network of its own; outside traffic goes through this machine"],
        ["Reached at", "ports of 127.0.0.1"],
      ],
      facts: { engine: { name: "qemu", version: saved.qemuVersion, accelerator }, memoryMegabytes, cpus },
    },
    clock,
  );
}
