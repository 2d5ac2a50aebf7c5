import type { ClusterRecord } from "../../../model/cluster-record.ts";
import { ClusterError } from "../../../errors.ts";
import { machineFailed } from "../../machine-failed.ts";
import type { Architecture } from "../qemu/architecture.ts";
import { readCluster, type StoredCluster } from "../cluster-facts.ts";
import { consoleOutput } from "../console-output.ts";
import { observeCluster } from "../records.ts";

/** Looks at all machines of a creation. Throws `machine-failed` if one of them has ended, or all have been removed. */
export async function lookAtMachines(
  directory: string,
  { firmware }: Pick<Architecture, "firmware">,
): Promise<ClusterRecord> {
  const cluster = await observeCluster(await readOwnCluster(directory));
  const ended = cluster.nodes.find((node) => node.state === "ended");
  if (ended === undefined) return cluster;
  throw machineFailed(ended, {
    said: await consoleOutput(directory, ended).catch(() => ""),
    hint: `The image must boot from a disk with ${firmware}; the console output in the saved logs may show the cause.`,
  });
}

/** Reads what this creation has saved about itself. Throws `machine-failed` if somebody has removed it meanwhile. */
export async function readOwnCluster(directory: string): Promise<StoredCluster> {
  const stored = await readCluster(directory);
  if (stored !== undefined) return stored;
  throw new ClusterError("machine-failed", "The cluster was removed while it was being created.", {
    hint: "If that was a mistake, create it again.",
    facts: { directory },
  });
}
