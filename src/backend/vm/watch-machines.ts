import type { ClusterRecord } from "../../cluster/record.ts";
import { machineFailed } from "../machine-failed.ts";
import type { Architecture } from "./architecture.ts";
import { readCluster } from "./cluster-facts.ts";
import { consoleOutput } from "./evidence.ts";
import { observeCluster } from "./records.ts";

/** Looks at all machines of a creation. Throws `machine-failed` when one of them has ended. */
export async function watchMachines(
  directory: string,
  { firmware }: Pick<Architecture, "firmware">,
): Promise<ClusterRecord | undefined> {
  const stored = await readCluster(directory);
  if (stored === undefined) return undefined;
  const cluster = await observeCluster(stored);
  const ended = cluster.nodes.find((node) => node.state === "ended");
  if (ended === undefined) return cluster;
  throw machineFailed(ended, {
    said: await consoleOutput(directory, ended).catch(() => ""),
    hint: `The image must boot from a disk with ${firmware}; the console output among the evidence may say more.`,
  });
}
