import { type ClusterRecord, nodeReference } from "../../cluster/record.ts";
import { ClusterError } from "../../errors.ts";
import type { Architecture } from "./architecture.ts";
import { readCluster } from "./cluster-facts.ts";
import { consoleOutputs } from "./evidence.ts";
import { observeCluster } from "./records.ts";

const shownLines = 8;
/** Colours and the like. */
// oxlint-disable-next-line no-control-regex
const controls = /\u001B\[[0-9;?]*[A-Za-z]|[^\P{Cc}\n]/gu;

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
  const name = nodeReference(ended);
  const consoles = await consoleOutputs({ ...cluster, nodes: [ended] });
  const said = (consoles[0]?.text ?? "").replace(controls, "").trim().split("\n").slice(-shownLines).join("\n");
  throw new ClusterError(
    "machine-failed",
    `${name} (${ended.id}) ended before it could be used: ${ended.stateReason}.\n${said}`.trim(),
    {
      hint: `The image must boot from a disk with ${firmware}; the console output among the evidence may say more.`,
      facts: { node: name, machine: ended.id, reason: ended.stateReason },
    },
  );
}
