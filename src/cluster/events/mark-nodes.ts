import type { ClusterRecord, NodeRecord } from "../../model/cluster-record.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Work } from "../../system/runtime.ts";
import { withinLimit } from "../../system/time-limit.ts";
import { clusterKey, openConnections } from "../connections.ts";

const nodesAtOnce = 32;
const limitMs = 5_000;

export interface Mark {
  readonly nodes: readonly NodeRecord[];
  readonly text: string;
}

/** Leaves a line in the journals of running nodes, so that a platform's own logs show what was done to it. Nodes that don't answer soon get none. */
export async function markNodes(
  work: Work,
  cluster: ClusterRecord,
  { nodes, text }: Mark,
): Promise<void> {
  const running = nodes.filter(({ state }) => state === "running");
  if (running.length === 0 || !(await clusterKey(cluster)).isHere) return;
  await using connections = openConnections(cluster.directory, work);
  const mark = async (node: NodeRecord, inner: AbortSignal): Promise<void> => {
    // Without a journal that reads, `logger` waits for ever, also after its login has ended.
    const argv = ["timeout", String(limitMs / 1000), "logger", "-t", "cluster-e2e", "--", text];
    await (await connections.connect(node, inner)).run({ argv, limitMs }, inner).catch(() => {});
  };
  const markAll = async (inner: AbortSignal): Promise<void> =>
    void (await mapConcurrently(
      running,
      nodesAtOnce,
      async (node) => mark(node, inner).catch(() => {}),
      inner,
    ));
  await withinLimit(limitMs, markAll, () => {}, work.signal);
}
