import { join } from "node:path";
import { readBootId, acquireProcessLock } from "../../system/processes/process-identity.ts";
import { type ClusterRecord, type Counts, roles } from "../../model/cluster-record.ts";
import type { Runtime } from "../../system/runtime.ts";
import { version } from "../../version.ts";
import type { CreationRemains, FirstLogin } from "../contract.ts";
import { hostKeyPerNode } from "../shared/first-boot.ts";
import { endAfter } from "../shared/lifetimes.ts";
import {
  type NodeFacts,
  type StoredCluster,
  assertIdIsFree,
  removalCommand,
  writeClusterFacts,
} from "./cluster-facts.ts";
import { privateAddress } from "./machines/private-network.ts";
import { consoleProgress } from "./machines/console-sink.ts";
import { findFreePorts, toPorts } from "./machines/launch.ts";
import { machineFiles } from "./machines/machine-process.ts";
import { describeCreation, removeCreation, stopCreation } from "./records.ts";

/**
 * Translated code boots ten times slower, and all machines share this computer. The limits cover the time until the
 * first login and the time from then on.
 */
export const slowLimitMs = 40 * 60_000;

/** The nodes in the order in which their machines are launched. */
export const newNodes = (counts: Counts): readonly Omit<NodeFacts, "id" | "ports">[] =>
  roles
    .flatMap((role) => Array.from({ length: counts[role] }, (_, index) => ({ role, index })))
    .map((name, place) => ({ ...name, privateAddress: privateAddress(place) }));

/** What is on the disk of a creation once it has claimed its id. */
export interface ClaimedMachines {
  readonly directory: string;
  readonly facts: Omit<StoredCluster["facts"], "schemaVersion">;
}

interface MachinesPlan {
  readonly root: string;
  readonly request: { readonly clusterId: string; readonly lifetimeMs?: number | undefined };
}

/**
 * The part of a creation that is the same whether its machines boot from an image or continue from
 * a snapshot. See Creation.
 */
export abstract class VmMachines<Claimed extends ClaimedMachines> {
  protected readonly runtime: Runtime;
  protected readonly hostKeys = hostKeyPerNode();
  protected readonly state: { claimed?: Claimed } = {};
  /** The ids of the machines that have left the keys of what they were copied from, for some that no seed contains. */
  protected readonly introduced = new Set<string>();
  readonly #plan: MachinesPlan;

  constructor(plan: MachinesPlan, runtime: Runtime) {
    this.#plan = plan;
    this.runtime = runtime;
  }

  /** The order of the nodes stays, because a machine's addresses depend on its place. */
  protected async newFacts(creationId: string, nodes: readonly Omit<NodeFacts, "id" | "ports">[]) {
    const ports = await findFreePorts(nodes.length * 3);
    const { clock } = this.runtime;
    return {
      clusterId: this.#plan.request.clusterId,
      creationId,
      createdAt: new Date(clock.now()).toISOString(),
      // Always there, so that a copy doesn't inherit it.
      expiresAt: endAfter(this.#plan.request.lifetimeMs, clock)?.toISOString(),
      createdBy: version,
      bootId: await readBootId(),
      nodes: nodes.map((node, place) => ({
        ...node,
        id: `vm-${creationId.slice(0, 8)}-${place}`,
        ports: toPorts(ports.slice(place * 3)),
      })),
    };
  }

  /** Saves what will be created, while no other creation on this machine can do so. */
  protected async claimId(claimed: Claimed, signal: AbortSignal): Promise<void> {
    const { root, request } = this.#plan;
    const { clock, progress } = this.runtime;
    const onWait = (advice: string): void =>
      progress.note(`Waiting for another creation to claim its id.${advice}`);
    await using _ = await acquireProcessLock(join(root, ".lock"), { clock, onWait }, signal);
    await assertIdIsFree(root, request.clusterId, []);
    this.state.claimed = claimed;
    await writeClusterFacts(claimed.directory, claimed.facts);
  }

  protected get claimed(): Claimed {
    const { claimed } = this.state;
    if (claimed === undefined) throw new TypeError("The id has not been claimed");
    return claimed;
  }

  async describe(): Promise<ClusterRecord> {
    return describeCreation(this.claimed);
  }

  /** A machine with other keys doesn't count as up, because first contact would take it for somebody else's. */
  protected introducedOnly(cluster: ClusterRecord): ClusterRecord {
    const nodes = cluster.nodes.map((node) =>
      this.introduced.has(node.id) ? node : { ...node, state: "starting" as const },
    );
    return { ...cluster, nodes };
  }

  get firstLogin() {
    return {
      // A broken machine is reported within a second.
      lookEveryMs: 500,
      limitMs: this.isSlow ? slowLimitMs : 10 * 60_000,
      everyMs: 1_500,
      sign: async (node) => consoleProgress(machineFiles(this.claimed.directory, node).folder),
      hostKey: (node) => ({
        publicKey: this.hostKeys.of(node).publicKey,
        isPrivate: this.introduced.has(node.id),
      }),
    } satisfies FirstLogin;
  }

  protected abstract get isSlow(): boolean;

  async stop(signal: AbortSignal): Promise<void> {
    const { claimed } = this.state;
    if (claimed !== undefined) await stopCreation(claimed.directory, this.runtime.clock, signal);
  }

  async remove(signal: AbortSignal): Promise<undefined> {
    const { claimed } = this.state;
    if (claimed !== undefined) await removeCreation({ ...this.runtime, signal }, claimed.directory);
  }

  remains(): CreationRemains | undefined {
    if (this.state.claimed === undefined) return undefined;
    const how = `Remove them with: ${removalCommand(this.#plan.request.clusterId)}`;
    return { kept: `its machines. ${how}`, left: `Running virtual machines may be left. ${how}` };
  }
}
