import { messageOf } from "../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import type { Connection } from "../ssh/connection/connection.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { shellText } from "../ssh/shell-text.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { watchdog } from "../system/time-limit.ts";
import frameFile from "./frame.sh" with { type: "text" };
import { installPaths, installUnits, installWork, upgradeWork } from "./install-paths.ts";
import { layouts } from "./layouts/find-layout.ts";
import logsFile from "./node-logs.sh" with { type: "text" };

/**
 * Transfers texts written by a node's processes in one command's output, so that no text can
 * imitate another. Each text is a line `<name> <base64>`: base64 contains neither spaces nor line
 * breaks, and the names come from this program alone.
 */

/** The shell function `frame NAME`, which prints its stdin as one such line. */
export const frameFunction = shellText(frameFile);

const frameLine = /^([\w.-]+) ([A-Za-z0-9+/]*={0,2})$/;

/** Returns the texts by name, in the order of `names`. Skips unknown names, malformed lines and empty texts. */
export const parseFrames = <Name extends string>(
  stdout: string,
  names: readonly Name[],
): ReadonlyMap<Name, string> =>
  new Map([...parseBytes(stdout, names)].map(([name, bytes]) => [name, bytes.toString("utf8")]));

/** The same of texts that may be none. */
export function parseBytes<Name extends string>(
  stdout: string,
  names: readonly Name[],
): ReadonlyMap<Name, Buffer> {
  const found = new Map<string, string>();
  for (const line of stdout.split("\n")) {
    const [, name, encoded] = frameLine.exec(line) ?? [];
    if (name !== undefined && encoded !== undefined && !found.has(name)) found.set(name, encoded);
  }
  return new Map(
    names.flatMap((name): (readonly [Name, Buffer])[] => {
      const encoded = found.get(name) ?? "";
      return encoded === "" ? [] : [[name, Buffer.from(encoded, "base64")]];
    }),
  );
}

/** A node's log, or the end of it. */
interface NodeLog {
  /** A file name, such as `master_0.install.log`. */
  readonly name: string;
  readonly text: string;
}

const nodesAtOnce = 32;
/** Suffix of the text that replaces the logs of a node that could not be reached, and says why. */
export const noLogsSuffix = ".no-logs.txt";
/** Suffix of the text that names the logs of which only the end was sent. */
export const cutLogsSuffix = ".cut-logs.txt";
export const isNoteOnLogs = (name: string): boolean => /\.(?:no|cut)-logs\.txt$/.test(name);
/** How many bytes at the end of each log are sent. In base64, all logs together fit into a command's result. */
const tailBytes = 450_000;
/** The same for all units that a platform names, for all its files, and for the logs of an upgrade. */
const platformBytes = 150_000;
const mostListed = 50;
const unitsBytes = 100_000;
const dumpsBytes = 20_000;
const statusBytes = 1000;
const journalLines = 5000;
const clockLimitMs = 10_000;

const setupUnits = [
  ...Object.values(installUnits),
  ...layouts.flatMap((layout) => layout.setupUnits),
];

const factFiles = layouts.flatMap((layout) => layout.factFiles ?? []);

/** The logs' file names on this machine, as node-logs.sh prints them, and how much of each. */
const logBytes = {
  "install.log": tailBytes,
  "install-status.txt": statusBytes,
  "genconf.log": tailBytes,
  "upgrade.log": platformBytes,
  "upgrade-status.txt": statusBytes,
  "upgrade-genconf.log": platformBytes,
  "cloud-init.log": tailBytes,
  "cloud-init-output.log": tailBytes,
  "units.txt": unitsBytes,
  "journal.txt": tailBytes,
  "kernel.txt": unitsBytes,
  "core-dumps.txt": dumpsBytes,
  "platform-units.txt": platformBytes,
  "platform-files.txt": platformBytes,
} as const;
const logNames = Object.keys(logBytes) as readonly (keyof typeof logBytes)[];

interface LogsSelection {
  /** Only the journals' lines of the last milliseconds; undefined: all. */
  readonly agoMs?: number | undefined;
  /** At most this much of the end of each log. */
  readonly mostBytes?: number;
}

/** Prints all logs in one round trip; see parseFrames. */
export const logsScript = ({ agoMs, mostBytes = tailBytes }: LogsSelection): string =>
  frameFunction +
  shellText(logsFile, {
    INSTALL_LOG: installPaths.installLog,
    INSTALL_STATUS: installPaths.installStatus,
    GENCONF_LOG: `${installWork.folder}/genconf.log`,
    UPGRADE_LOG: installPaths.upgradeLog,
    UPGRADE_STATUS: installPaths.upgradeStatus,
    UPGRADE_GENCONF_LOG: `${upgradeWork.folder}/genconf.log`,
    UNITS: setupUnits.join(" "),
    UNIT_LISTS: factFiles.map(({ logUnits }) => logUnits).join(" "),
    FILE_LISTS: factFiles.map(({ logFiles }) => logFiles).join(" "),
    MOST_LISTED: mostListed,
    TAIL_BYTES: Math.min(tailBytes, mostBytes),
    PLATFORM_BYTES: Math.min(platformBytes, mostBytes),
    STATUS_BYTES: statusBytes,
    UNITS_BYTES: Math.min(unitsBytes, mostBytes),
    DUMPS_BYTES: dumpsBytes,
    JOURNAL_LINES: journalLines,
    AGO: agoMs === undefined ? "" : Math.ceil(agoMs / 1000),
  });

/** Parses the output of `logsScript`. */
export function parseLogs(stdout: string, mostBytes = tailBytes): readonly NodeLog[] {
  const found = [...parseFrames(stdout, logNames)];
  const cut = found.filter(
    ([name, text]) =>
      Buffer.byteLength(text) >= Math.min(logBytes[name], mostBytes) ||
      (name === "journal.txt" && text.split("\n", journalLines + 1).length > journalLines),
  );
  const names = cut.map(([name]) => name).join(", ");
  return [
    ...found.map(([name, text]) => ({ name, text })),
    ...(names === "" ? [] : [{ name: cutLogsSuffix.slice(1), text: `${names}\n` }]),
  ];
}

export interface LogsLimits extends LogsSelection {
  readonly limitMs: number;
}

/**
 * Collects the logs of every node that answers within `limitMs`, named `<reference>.<log>`. Never
 * throws: for other nodes it returns a text with the reason. The logs may hold secrets, which the
 * code that writes them masks.
 */
export async function collectNodeLogs(
  cluster: ClusterRecord,
  connections: ConnectionPool,
  { limitMs, ...selection }: LogsLimits,
  signal: AbortSignal,
): Promise<readonly NodeLog[]> {
  using limit = watchdog(limitMs, signal);
  const nodes = cluster.nodes.filter(
    (node) => !["ended", "stopped", "paused"].includes(node.state) && node.ssh.host !== "",
  );
  const texts = await mapConcurrently(
    nodes,
    nodesAtOnce,
    async (node) => logsOf(node, { connections, selection }, limit.signal),
    signal,
  );
  return texts.flat();
}

/** Compares a node's clock with this computer's. Undefined if the node doesn't say its time. */
async function clockOf(connection: Connection, signal: AbortSignal): Promise<string | undefined> {
  const beginMs = Date.now();
  const { stdout } = await connection.run(
    { argv: ["date", "+%s.%N"], limitMs: clockLimitMs, isOutputHidden: true },
    signal,
  );
  const endMs = Date.now();
  const nodeMs = /^\d{9,11}\.\d{9}\n$/.test(stdout) ? Number(stdout) * 1000 : Number.NaN;
  if (Number.isNaN(nodeMs)) return undefined;
  // A clock that is right at some time of the command may be right: to shift its lines would reorder them.
  const mayBeRight = nodeMs >= beginMs && nodeMs <= endMs;
  return clockText(mayBeRight ? 0 : Math.round(nodeMs - (beginMs + endMs) / 2), endMs - beginMs);
}

/** The difference of a node's clock as its file has it; `readClock` reads it. */
export function clockText(aheadMs: number, withinMs: number): string {
  const difference =
    aheadMs === 0
      ? "the same as"
      : `${Math.abs(aheadMs)} ms ${aheadMs > 0 ? "ahead of" : "behind"}`;
  return `${aheadMs} ms\nWhen these logs were fetched, the node's clock was ${difference} this computer's, measured within ${withinMs} ms.\n`;
}

/** A clock that is off by more says nothing about the times of its lines. */
const mostOffsetMs = 100 * 365 * 24 * 60 * 60_000;

/** By how many milliseconds a node's clock was ahead, as `clock.txt` says; undefined if it can't be right. */
export function readClock(text: string): number | undefined {
  const offsetMs = Number(/^-?\d{1,15} ms$/m.exec(text.slice(0, 100))?.[0].slice(0, -" ms".length));
  return Math.abs(offsetMs) <= mostOffsetMs ? offsetMs : undefined;
}

async function logsOf(
  node: NodeRecord,
  {
    connections,
    selection,
  }: { readonly connections: ConnectionPool; readonly selection: LogsSelection },
  signal: AbortSignal,
): Promise<readonly NodeLog[]> {
  const reference = nodeReference(node);
  try {
    const connection = await connections.connect(node, signal);
    const argv = ["sh", "-s", "--", "e2e-logs"];
    const { stdout } = await connection.run(
      { argv, sudo: true, stdin: logsScript(selection), isOutputHidden: true },
      signal,
    );
    const found = parseLogs(stdout, selection.mostBytes).map(({ name, text }) => ({
      name: `${reference}.${name}`,
      text,
    }));
    const text = await clockOf(connection, signal).catch(() => undefined);
    return text === undefined ? found : [{ name: `${reference}.clock.txt`, text }, ...found];
  } catch (error) {
    const message = messageOf(error);
    const reason = signal.aborted ? "The node did not answer in time." : message;
    return [{ name: `${reference}${noLogsSuffix}`, text: `${reason}\n` }];
  }
}
