import { access, mkdir, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/runtime.ts";
import { poll } from "../../../system/retry.ts";
import {
  folderForSockets,
  isOwnTemporaryFolder,
  systemTemporaryFolder,
} from "../../../system/files/private-file.ts";
import { machinesFolder, processFiles, type ProcessFiles, startQemu } from "./machine-process.ts";
import { escaped, type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { sandboxArguments } from "../qemu/accelerator.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { ipDetectOf } from "../../shared/node-scripts.ts";
import findInnerAddress from "../find-inner-address.sh" with { type: "text" };

export const networkFiles = (directory: string): ProcessFiles =>
  processFiles(networkFolder(directory));

const networkFolder = (directory: string): string => join(machinesFolder(directory), "network");

/**
 * The sockets that connect a cluster's machines, needed whenever one of these starts. They have a
 * separate folder, because socket paths must be short. A path relative to the cluster's folder
 * wouldn't work either, because QEMU may leave its starting folder before it uses the path.
 */
export interface NetworkSockets {
  readonly folder: string;
  readonly count: number;
}

/** Returns the socket of the node at this place in the launch order. */
export const socketPath = (sockets: NetworkSockets, place: number): string =>
  join(sockets.folder, `socket-${place}`);

/** Makes the folder of a cluster's sockets, and returns its path. It stays until `removeSockets`. */
export async function makeSocketsFolder(directory: string): Promise<string> {
  const folder = await systemTemporaryFolder(folderForSockets());
  try {
    await recordSockets(directory, folder.path);
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
  return folder.path;
}

/** Records where the sockets are, so that they can be removed if the program is killed before it removes them. */
export async function recordSockets(directory: string, folder: string): Promise<void> {
  await mkdir(networkFolder(directory), { recursive: true, mode: 0o700 });
  await writeFile(socketsRecord(directory), folder, { mode: 0o600 });
}

/** Where the cluster's sockets are; empty if that isn't recorded, or if they are gone. */
export const socketsFolder = async (directory: string): Promise<string> => {
  const folder = await readOwnText(socketsRecord(directory)).catch(() => "");
  return (await isOwnTemporaryFolder(folder)) ? folder : "";
};

/** Removes the recorded sockets and their folder, but nothing else there, whatever the record contains. */
export async function removeSockets(directory: string): Promise<void> {
  const folder = await socketsFolder(directory);
  if (folder === "") return;
  const names = await readdir(folder).catch(() => []);
  const sockets = names.filter((name) => /^socket-[0-9]+$/.test(name));
  await Promise.all(sockets.map(async (name) => rm(join(folder, name), { force: true })));
  await rmdir(folder).catch(() => {});
}

const socketsRecord = (directory: string): string => join(networkFolder(directory), "sockets");

export interface NetworkPlan {
  readonly directory: string;
  readonly sockets: NetworkSockets;
  readonly isSandboxed: boolean;
  readonly clock: Clock;
}

/**
 * Starts the program that connects all of a cluster's machines: a QEMU without a machine, with one socket for each. It
 * needs no privileges, nothing else on this computer can listen in, and it survives the end of any machine.
 */
export async function startNetwork(
  qemu: Qemu,
  plan: NetworkPlan,
  signal: AbortSignal,
): Promise<void> {
  const files = networkFiles(plan.directory);
  await mkdir(dirname(files.disk), { recursive: true, mode: 0o700 });
  await writeFile(files.disk, "", { mode: 0o600 });
  signal.throwIfAborted();
  // Runs to completion, even if something is aborted meanwhile, because it must be known what was started.
  const words = [...sandboxArguments(plan), ...networkWords(files, plan.sockets)];
  const start = async () => qemu.system(words, new AbortController().signal);
  const end = await startQemu(files, start, plan.clock, signal);
  if (end.status !== 0) throw qemuFailure(`${qemu.systemName} for the private network`, end);
  await awaitSockets(plan, signal);
}

function networkWords({ disk, pid }: ProcessFiles, sockets: NetworkSockets): readonly string[] {
  const connections = Array.from({ length: sockets.count }, (_, place) => [
    [
      "-netdev",
      `stream,id=socket${place},server=on,addr.type=unix,addr.path=${escaped(socketPath(sockets, place))}`,
    ],
    ["-netdev", `hubport,id=port${place},hubid=0,netdev=socket${place}`],
  ]);
  // The disk is empty and never read. If it is missing, a process that was only starting while everything was removed
  // can't continue. See removeCreation.
  const file = { driver: "file", "node-name": "disk", filename: disk, "read-only": true };
  const rest = ["-blockdev", JSON.stringify(file), "-pidfile", pid, "-daemonize"];
  return [
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-machine",
    "none",
    ...connections.flat(2),
    ...rest,
  ];
}

/**
 * The sockets may appear only after QEMU has gone to the background. A machine that starts earlier would never be
 * connected.
 */
async function awaitSockets({ sockets, clock }: NetworkPlan, signal: AbortSignal): Promise<void> {
  const paths = Array.from({ length: sockets.count }, (_, place) => socketPath(sockets, place));
  const look = async (): Promise<true> => {
    await Promise.all(paths.map(async (path) => access(path)));
    const unready = (await silentSockets()).find((path) => paths.includes(path));
    if (unready !== undefined) throw new Error(`${unready} has a name, but nobody listens yet`);
    return true;
  };
  const rule = { ...ruleOf(waits.networkSockets, clock), tolerates: () => true };
  await poll(look, rule, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw new ClusterError(
      "engine-failed",
      "QEMU does not create the sockets of the machines' private network.",
      {
        hint: "Set TMPDIR to a folder on a local disk, with a short path.",
        facts: { folder: sockets.folder },
        cause,
      },
    );
  });
}

/**
 * The sockets that have a name already and don't listen yet, as Linux lists them; those of
 * connections aren't among them.
 */
async function silentSockets(): Promise<readonly string[]> {
  const table = await readOwnText("/proc/net/unix").catch(() => "");
  // Num RefCount Protocol Flags Type St Inode Path
  const rows = table.matchAll(/^\S+ \S+ \S+ ([0-9A-F]{8}) \S+ 01 +\S+ (\/.*)$/gm);
  const acceptsConnections = 0x10000;
  return [...rows].flatMap(([, flags = "", path = ""]) =>
    (Number.parseInt(flags, 16) & acceptsConnections) === 0 ? [path] : [],
  );
}

/**
 * Private addresses of nodes: 10.93.0.2, 10.93.0.3, …; each cluster has its own network, so all
 * clusters can use the same addresses.
 */
const prefix = "10.93";
const networkBits = 16;

/** Returns the address of the node at this place in the launch order. */
export function privateAddress(place: number): string {
  const number = place + 2;
  return `${prefix}.${Math.floor(number / 256)}.${number % 256}`;
}

export const privateAddressWithBits = (place: number): string =>
  `${privateAddress(place)}/${networkBits}`;

/** Prints the node's private IPv4 address. */
export const ipDetect = ipDetectOf(
  shellText(findInnerAddress, { PREFIX: prefix.replace(".", "\\."), BITS: networkBits }),
);
