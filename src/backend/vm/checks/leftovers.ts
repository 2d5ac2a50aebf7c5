import { join } from "node:path";
import type { ClusterRecord } from "../../../model/cluster-record.ts";
import { type Check, localLimitMs } from "../../../model/check.ts";
import { leftovers } from "../../leftovers.ts";
import { withStrangers } from "../../with-strangers.ts";
import { foreignFolders, readClusters } from "../cluster-facts.ts";
import { destroyCommand } from "../destroy-command.ts";
import { isRunning } from "../machines/machine-process.ts";
import { networkFiles } from "../machines/private-network.ts";
import { observeCluster } from "../records.ts";

/** Reports what interrupted creates left behind, and clusters without a running machine. */
export function leftoversCheck(root: string): Check {
  return {
    name: "leftovers",
    limitMs: localLimitMs,
    run: async () => {
      const clusters = await Promise.all((await readClusters(root)).map(observeCluster));
      const outcome = await leftovers({ clusters, root, removal: destroyCommand, troubleOf });
      return withStrangers(
        outcome,
        await foreignFolders(root),
        `Remove it, or put the folder itself in its place in ${root}`,
      );
    },
  };
}

async function troubleOf({ nodes, directory }: ClusterRecord): Promise<string | undefined> {
  if (nodes.length === 0) return `${join(directory, "cluster.json")} cannot be read`;
  const isConnected = nodes.length === 1 || (await isRunning(networkFiles(directory)));
  return isConnected ? undefined : "the process of its private network has ended";
}
