import { type Check, localLimitMs, type Outcome, pass, warn } from "../../../doctor/check.ts";
import { abandonedCreations } from "../../../system/creation-folder.ts";
import { readClusters, type StoredCluster } from "../cluster-facts.ts";
import { isRunning } from "../machine-process.ts";
import { networkFiles } from "../private-network.ts";
import { observeCluster } from "../records.ts";

/** What creates that were cut short have left, and clusters of which no machine runs. */
export function leftoversCheck(root: string): Check {
  return { name: "leftovers", limitMs: localLimitMs, run: async () => find(root) };
}

async function find(root: string): Promise<Outcome> {
  const clusters = await readClusters(root);
  const judged = await Promise.all(
    clusters.map(async (stored) => ({ id: stored.facts.clusterId, what: await whatIsLeft(stored, root) })),
  );
  const left = judged.filter(({ what }) => what !== undefined);
  if (left.length === 0) return pass("None");
  return warn(
    `There are ${left.map(({ id, what }) => `cluster "${id}" (${what})`).join(", ")}.`,
    `Remove what you need no more: ${left.map(({ id }) => `cluster-vm destroy --cluster-id ${id}`).join("; ")}`,
  );
}

async function whatIsLeft(stored: StoredCluster, root: string): Promise<string | undefined> {
  const { clusterId, creationId } = stored.facts;
  const abandoned = await abandonedCreations(root, clusterId);
  if (abandoned.some(({ creation }) => creation.creationId === creationId)) return "its create was cut short";
  const { nodes } = await observeCluster(stored);
  if (nodes.every((node) => node.state === "ended")) return "none of its machines runs";
  const isConnected = nodes.length === 1 || (await isRunning(networkFiles(stored.directory)));
  return isConnected ? undefined : "the process of its private network has ended";
}
