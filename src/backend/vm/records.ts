import { rm } from "node:fs/promises";
import {
  type ClusterRecord,
  type NodeRecord,
  byRoleAndIndex,
  localClusterState,
  nodeHostname,
} from "../../model/cluster-record.ts";
import { isAbandonedCreation } from "../../store/creation-folder.ts";
import { readBootId } from "../../system/processes/process-identity.ts";
import type { Clock, Work } from "../../system/runtime.ts";
import { lockMachines } from "../shared/lock-machines.ts";
import {
  type NodeFacts,
  type StoredCluster,
  endOf,
  readCluster,
  removeClusterFacts,
} from "./cluster-facts.ts";
import { type Failure, type MachineLife, glanceMs, machineLife } from "./machines/machine-life.ts";
import {
  allProcessFiles,
  endMachines,
  machineFiles,
  machinesFolder,
} from "./machines/machine-process.ts";
import { removeSockets } from "./machines/private-network.ts";
import { resumeForgotten } from "./snapshots/pause-machines.ts";
import { templateNamed, unmarkUsed } from "./templates/template-files.ts";
import { snapshotsFolder } from "./snapshots/snapshot-files.ts";

/** cloud-init creates this user on every node at its first boot. */
export const sshUser = "e2e";

/**
 * Reads the cluster's current state and looks for each machine's process. Machines of a QEMU that
 * doesn't answer soon stay paused.
 */
export async function observeCluster({ directory, facts }: StoredCluster): Promise<ClusterRecord> {
  // If they can't continue, that is not what this caller asked for.
  const { nodes } = facts;
  await resumeForgotten({ directory, nodes }, AbortSignal.timeout(glanceMs)).catch(() => {});
  const [bootId, lives, isAbandoned] = await Promise.all([
    readBootId(),
    Promise.all(nodes.map((node) => machineLife(machineFiles(directory, node)))),
    isAbandonedCreation(directory),
  ]);
  const isRestarted = facts.bootId !== undefined && bootId !== undefined && facts.bootId !== bootId;
  return toCluster({ directory, facts }, lives, { isRestarted, isAbandoned });
}

/** Returns the current state of a creation, whatever happened to it. */
export async function describeCreation({
  directory,
  facts,
}: {
  readonly directory: string;
  readonly facts: Omit<StoredCluster["facts"], "schemaVersion">;
}): Promise<ClusterRecord> {
  const stored = await readCluster(directory);
  if (stored !== undefined) return observeCluster(stored);
  const unknown = { schemaVersion: 1, createdAt: undefined, webUi: undefined, nodes: [] } as const;
  const fate = { isRestarted: false, isAbandoned: false };
  return toCluster({ directory, facts: { ...facts, ...unknown } }, [], fate);
}

/** What happened to the creation. */
interface Fate {
  /** Whether this computer was restarted since the machines were started. */
  readonly isRestarted: boolean;
  /** Whether its program died before it was complete: nothing will start the rest. */
  readonly isAbandoned: boolean;
}

/** `lives` is in the order of the facts' nodes. */
export function toCluster(
  { directory, facts }: StoredCluster,
  lives: readonly MachineLife[],
  fate: Fate,
): ClusterRecord {
  const nodes = facts.nodes
    .map((node, index) => toNode(node, lives[index] ?? "unstarted", fate))
    .toSorted(byRoleAndIndex);
  return {
    id: facts.clusterId,
    creationId: facts.creationId,
    backend: "vm",
    region: undefined,
    variant: facts.variant,
    distribution: facts.distribution,
    state: localClusterState(nodes, facts.counts),
    requested: facts.counts,
    createdAt: facts.createdAt === undefined ? undefined : new Date(facts.createdAt),
    ...endOf(facts),
    webUi: facts.webUi,
    platform: facts.platform,
    nodes,
    directory,
  };
}

function toNode(node: NodeFacts, life: MachineLife, fate: Fate): NodeRecord {
  const host = "127.0.0.1";
  return {
    id: node.id,
    role: node.role,
    index: node.index,
    ...lifeAsState(life, fate),
    hostname: nodeHostname(node),
    publicAddress: undefined,
    privateAddress: node.privateAddress,
    ssh: { host, port: node.ports.ssh, user: sshUser },
    web: { host, httpPort: node.ports.http, httpsPort: node.ports.https },
  };
}

function lifeAsState(
  life: MachineLife,
  { isRestarted, isAbandoned }: Fate,
): Pick<NodeRecord, "state" | "stateReason"> {
  const ended = (stateReason: string) => ({ state: "ended" as const, stateReason });
  const stopped = (stateReason: string) => ({ state: "stopped" as const, stateReason });
  if (typeof life === "object") return ended(failureReason(life));
  switch (life) {
    case "unstarted":
      return isAbandoned
        ? ended("the machine was never started: its create was interrupted")
        : { state: "starting" };
    case "running":
    case "paused":
      return { state: life };
    case "ended":
      return stopped("the machine powered off");
    case "killed":
      return stopped(
        isRestarted
          ? "this computer has restarted since"
          : "its QEMU was killed, perhaps because memory ran out",
      );
  }
}

function failureReason({ failure, said }: Failure): string {
  const bySaid = said === undefined ? "" : ` (${said})`;
  switch (failure) {
    case "internal-error":
      return `QEMU stopped it with an internal error${bySaid}`;
    case "guest-panicked":
      return "its kernel panicked";
    case "io-error":
      return `QEMU stopped it because of a disk error${bySaid}`;
    case "crashed":
      return `its QEMU crashed${bySaid}`;
  }
}

/** Ends all machines of a creation but keeps their files, so that they can be examined. */
export async function stopCreation(
  directory: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  await endMachines(await allProcessFiles(directory), clock, signal);
}

/**
 * Ends a creation's machines and removes their files, but keeps its key and logs. Removes last what
 * makes the creation findable, so that an interrupted removal can be repeated. Throws
 * `engine-failed` if a machine doesn't end.
 */
export async function removeCreation(work: Work, directory: string): Promise<void> {
  await using _ = await lockMachines(work, directory);
  const { clock, environment } = work;
  const facts = (await readCluster(directory))?.facts;
  const machines = await allProcessFiles(directory);
  await endMachines(machines, clock, work.signal);
  // A QEMU whose starter was killed may still be starting. Without a disk it can't start, and if it
  // has already opened the disk, its process file exists by now.
  await Promise.all(machines.map(async ({ disk }) => rm(disk, { force: true })));
  await endMachines(machines, clock, work.signal);
  await removeSockets(directory);
  await rm(snapshotsFolder(directory), { recursive: true, force: true });
  await rm(machinesFolder(directory), { recursive: true, force: true });
  await removeClusterFacts(directory);
  const template = facts?.machines?.template;
  if (template !== undefined)
    await unmarkUsed(templateNamed(environment, template), facts?.creationId ?? "");
}
