import { randomUUID } from "node:crypto";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { nodeReference } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import { runAtOnce } from "../system/concurrency.ts";
import { watchdog } from "../system/watchdog.ts";
import { installPaths, installUnits } from "./install-paths.ts";
import { layouts } from "./layouts/find-layout.ts";

/** A log of a node, or the end of it. */
export interface NodeLog {
  /** A file name, such as `master_0.install.log`. */
  readonly name: string;
  readonly text: string;
}

const nodesAtOnce = 32;
/** What a text is called that stands for the logs of a node that couldn't be asked, and says why. */
export const noLogsSuffix = ".no-logs.txt";
/** Of the end of each log. */
const tailBytes = 500_000;
const journalLines = 5000;

const setupUnits = [installUnits.install, installUnits.bootstrap, ...layouts.flatMap((layout) => layout.setupUnits)];

/** Prints each log after a line `<mark> <name>`. The mark is the second argument: no log can hold it. */
export const logsScript = `
mark=$2
file() { [ ! -s "$2" ] || { echo "$mark $1"; tail -c ${tailBytes} "$2"; echo; }; }
file install.log ${installPaths.installLog}
file install-status.txt ${installPaths.installStatus}
file genconf.log ${installPaths.workFolder}/genconf.log
file cloud-init.log /var/log/cloud-init.log
file cloud-init-output.log /var/log/cloud-init-output.log
echo "$mark units.txt"
systemctl --no-pager --no-legend --failed list-units 2>&1
systemctl --no-pager --lines 20 status ${setupUnits.join(" ")} 2>&1
echo "$mark journal.txt"
journalctl --no-pager -q -b -n ${journalLines} 2>&1 | tail -c ${tailBytes}
exit 0
`;

export interface NodeLogsLimit {
  /** Milliseconds for all nodes together; what has come by then is returned. */
  readonly limitMs: number;
}

/**
 * The logs of installer, platform and first boot of every node that answers in time, named `<reference>.<log>`. Best effort: a node that
 * can't be asked gives a text that says why, and nothing fails. They may hold secrets: whoever writes them masks them.
 */
export async function collectNodeLogs(
  cluster: ClusterRecord,
  connections: ConnectionPool,
  { limitMs }: NodeLogsLimit,
  signal: AbortSignal,
): Promise<readonly NodeLog[]> {
  using limit = watchdog(limitMs, signal);
  const nodes = cluster.nodes.filter((node) => node.state !== "ended" && node.ssh.host !== "");
  const texts = await runAtOnce(nodes, nodesAtOnce, async (node) => logsOf(node, connections, limit.signal), signal);
  return texts.flat();
}

async function logsOf(node: NodeRecord, connections: ConnectionPool, signal: AbortSignal): Promise<readonly NodeLog[]> {
  const reference = nodeReference(node);
  const mark = `--- ${randomUUID()}`;
  try {
    const connection = await connections.connect(node, signal);
    const result = await connection.run(
      { argv: ["sh", "-s", "--", "e2e-logs", mark], sudo: true, stdin: logsScript },
      signal,
    );
    return splitLogs(result.stdout, mark).map(({ name, text }) => ({ name: `${reference}.${name}`, text }));
  } catch (error) {
    const told = error instanceof Error ? error.message : String(error);
    const reason = signal.aborted ? "The node did not answer in time." : told;
    return [{ name: `${reference}${noLogsSuffix}`, text: `${reason}\n` }];
  }
}

/** A log that was cut off at its beginning has lost its mark, and is left out. */
export function splitLogs(stdout: string, mark: string): readonly NodeLog[] {
  return stdout
    .split(`${mark} `)
    .slice(1)
    .map((part) => {
      const end = part.indexOf("\n");
      return { name: part.slice(0, end), text: part.slice(end + 1) };
    });
}
