import { messageOf } from "../errors.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { nodeReference } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { mapConcurrently } from "../system/map-concurrently.ts";
import { watchdog } from "../system/time-limit.ts";
import { shellText } from "../ssh/shell-text.ts";
import { frameFunction, parseFrames } from "./framed-output.ts";
import { installPaths, installUnits } from "./install-paths.ts";
import { layouts } from "./layouts/find-layout.ts";
import logsFile from "./node-logs.sh" with { type: "text" };

/** A node's log, or the end of it. */
export interface NodeLog {
  /** A file name, such as `master_0.install.log`. */
  readonly name: string;
  readonly text: string;
}

const nodesAtOnce = 32;
/** Suffix of the text that replaces the logs of a node that could not be reached, and says why. */
export const noLogsSuffix = ".no-logs.txt";
/** Length of the end that is kept of each log. In base64, all logs together fit into the part of a command's output that is kept. */
const tailBytes = 500_000;
const unitsBytes = 100_000;
const journalLines = 5000;

const setupUnits = [installUnits.install, installUnits.bootstrap, ...layouts.flatMap((layout) => layout.setupUnits)];

/** The logs' file names on this machine, as node-logs.sh prints them. */
const logNames = [
  "install.log",
  "install-status.txt",
  "genconf.log",
  "cloud-init.log",
  "cloud-init-output.log",
  "units.txt",
  "journal.txt",
] as const;

/** Prints all logs in one round trip; see framed-output.ts. */
export const logsScript =
  frameFunction +
  shellText(logsFile, {
    INSTALL_LOG: installPaths.installLog,
    INSTALL_STATUS: installPaths.installStatus,
    GENCONF_LOG: `${installPaths.workFolder}/genconf.log`,
    UNITS: setupUnits.join(" "),
    TAIL_BYTES: tailBytes,
    UNITS_BYTES: unitsBytes,
    JOURNAL_LINES: journalLines,
  });

/** Parses what `logsScript` printed. */
export const parseLogs = (stdout: string): readonly NodeLog[] =>
  [...parseFrames(stdout, logNames)].map(([name, text]) => ({ name, text }));

export interface NodeLogsLimit {
  /** Time limit in milliseconds for all nodes together; logs that arrive by then are returned. */
  readonly limitMs: number;
}

/**
 * Collects the logs of installer, platform and first boot from every node that answers in time, named `<reference>.<log>`. Best effort: for a node
 * that can't be reached it returns a text that says why, and it never throws. The logs may hold secrets; the code that writes them masks those.
 */
export async function collectNodeLogs(
  cluster: ClusterRecord,
  connections: ConnectionPool,
  { limitMs }: NodeLogsLimit,
  signal: AbortSignal,
): Promise<readonly NodeLog[]> {
  using limit = watchdog(limitMs, signal);
  const nodes = cluster.nodes.filter((node) => node.state !== "ended" && node.ssh.host !== "");
  const texts = await mapConcurrently(
    nodes,
    nodesAtOnce,
    async (node) => logsOf(node, connections, limit.signal),
    signal,
  );
  return texts.flat();
}

async function logsOf(node: NodeRecord, connections: ConnectionPool, signal: AbortSignal): Promise<readonly NodeLog[]> {
  const reference = nodeReference(node);
  try {
    const connection = await connections.connect(node, signal);
    const result = await connection.run(
      { argv: ["sh", "-s", "--", "e2e-logs"], sudo: true, stdin: logsScript, isOutputHidden: true },
      signal,
    );
    return parseLogs(result.stdout).map(({ name, text }) => ({ name: `${reference}.${name}`, text }));
  } catch (error) {
    const told = messageOf(error);
    const reason = signal.aborted ? "The node did not answer in time." : told;
    return [{ name: `${reference}${noLogsSuffix}`, text: `${reason}\n` }];
  }
}
