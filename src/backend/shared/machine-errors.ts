import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type ClusterName, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { outsideLines } from "../../system/printable.ts";

const shownLines = 8;
/** Escape sequences with which a firmware or a boot loader moves the cursor. */
// oxlint-disable-next-line no-control-regex
const sequences = /\u001B\[[0-9;?]*[A-Za-z]/g;

/** Returns the error for a creation whose node ended by itself. `output` is what its console shows. */
export function machineFailed(
  node: NodeRecord,
  { output, hint }: { readonly output: string; readonly hint: string },
): ClusterError {
  const name = nodeReference(node);
  const lastLines = outsideLines(output.replaceAll(sequences, ""), shownLines).map(
    (line) => `  ${line}`,
  );
  const stateReason = node.stateReason === undefined ? undefined : outside(node.stateReason);
  const reason = stateReason ?? "the reason is not known";
  return new ClusterError(
    "machine-failed",
    [`${name} (${node.id}) stopped before it could be used: ${reason}.`, ...lastLines].join("\n"),
    {
      hint,
      facts: { node: name, machine: node.id, reason: stateReason },
    },
  );
}

/**
 * Returns the error for an id that another cluster on this machine has; `removal` is the command
 * that removes that cluster.
 */
export function clusterExists(
  clusterId: string,
  { removal, cause }: { readonly removal: string; readonly cause?: unknown },
): ClusterError {
  return new ClusterError(
    "cluster-exists",
    `A cluster "${clusterId}" already exists or is being created on this computer.`,
    {
      hint: `Choose another ${optionName("clusterId")}, or remove that cluster:\n    ${removal}`,
      facts: { cluster: clusterId },
      cause,
    },
  );
}

/** Throws `snapshot-exists` if the cluster has a complete snapshot with this name. An incomplete one is replaced. */
export function assertIncomplete({ id }: ClusterName, name: string, isComplete: boolean): void {
  if (!isComplete) return;
  throw new ClusterError("snapshot-exists", `Cluster "${id}" has a snapshot "${name}" already.`, {
    hint: "Choose another name, or delete that snapshot first.",
    facts: { cluster: id, snapshot: name },
  });
}

export const snapshotNotFound = (
  { id }: ClusterName,
  name: string,
  others: readonly string[],
): ClusterError =>
  new ClusterError("snapshot-not-found", `Cluster "${id}" has no snapshot "${name}".`, {
    hint: others.length === 0 ? "It has no snapshots." : `It has: ${others.join(", ")}.`,
    facts: { cluster: id, snapshot: name, others },
  });

/** For a snapshot that cannot be restored because of what is missing. */
export const notWhole = ({ id }: ClusterName, name: string): ClusterError =>
  new ClusterError(
    "snapshot-unusable",
    `The snapshot "${name}" of cluster "${id}" is incomplete.`,
    {
      hint: "Delete it, or make it again under the same name.",
      facts: { cluster: id, snapshot: name },
    },
  );

/** For a cluster with a node that does not run. */
export const notRunning = (
  clusterId: string,
  problem: string,
  hint = "Start its nodes, or restore another snapshot first.",
): ClusterError =>
  new ClusterError("machine-failed", `Cluster "${clusterId}" cannot be saved: ${problem}.`, {
    hint,
    facts: { cluster: clusterId },
  });

/**
 * `images` are those that the backend lacks; `instead` is what users may pass, such as "pass an
 * image with `image`".
 */
export const unknownDistribution = (
  distribution: string,
  {
    images,
    known,
    instead,
  }: { readonly images: string; readonly known: readonly string[]; readonly instead: string },
): ClusterError =>
  new ClusterError("bad-usage", `${images} known for the distribution "${distribution}".`, {
    hint: `Choose one of ${known.join(", ")}, or ${instead}.`,
    facts: { distribution, known },
  });

export const cgroups1Advice = (distributions: readonly string[]): string =>
  `Choose a ${optionName("linuxDistribution")} that has cgroups 1: ${distributions.join(", ")}.`;

export function assertCgroups1(
  needsCgroups1: boolean,
  nodes: {
    readonly name: string;
    readonly cgroupVersion: 1 | 2 | undefined;
    readonly advice: string;
  },
): void {
  if (!needsCgroups1 || nodes.cgroupVersion !== 2) return;
  throw new ClusterError(
    "machine-not-set-up",
    `The artifact's platform requires cgroups 1, but ${nodes.name} has cgroups 2.`,
    { hint: nodes.advice, facts: { nodes: nodes.name, cgroupVersion: nodes.cgroupVersion } },
  );
}
