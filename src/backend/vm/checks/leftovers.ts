import { type Check, localLimitMs } from "../../../doctor/check.ts";
import { leftovers } from "../../leftovers.ts";
import { readClusters } from "../cluster-facts.ts";
import { observeCluster } from "../records.ts";

/** What creates that were cut short have left, and clusters of which no machine runs. */
export function leftoversCheck(root: string): Check {
  return {
    name: "leftovers",
    limitMs: localLimitMs,
    run: async () => leftovers("vm", await Promise.all((await readClusters(root)).map(observeCluster)), root),
  };
}
