import { access, mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/clock.ts";
import { isTemporaryFolder } from "../../../system/files/temporary-folder.ts";
import { machinesFolder, processFiles, type ProcessFiles } from "./machine-files.ts";
import { escaped, type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { sandboxWords } from "../qemu/sandbox.ts";

const pauseMs = 10;
const patienceMs = 10_000;

export const networkFiles = (directory: string): ProcessFiles => processFiles(networkFolder(directory));

const networkFolder = (directory: string): string => join(machinesFolder(directory), "network");

/**
 * A cluster's wires while its machines are being connected: sockets in a folder of its own. Not in the cluster's, since the names of sockets may
 * not be long; nor by a name relative to that, since QEMU leaves the folder that it starts in before it is sure to have used the name.
 */
export interface Wires {
  readonly folder: string;
  readonly count: number;
}

/** Of the node at this place in the launch order. */
export const wirePath = (wires: Wires, place: number): string => join(wires.folder, `wire-${place}`);

/** Writes down where the wires are, so that they can be removed where the program was killed before it could. */
export async function noteWires(directory: string, folder: string): Promise<void> {
  await mkdir(networkFolder(directory), { recursive: true, mode: 0o700 });
  await writeFile(wiresNote(directory), folder, { mode: 0o600 });
}

/** Removes what wires there are by the note, and their folder: nothing else that may be there, whatever the note says. */
export async function removeWires(directory: string): Promise<void> {
  const folder = await readFile(wiresNote(directory), "utf8").catch(() => "");
  if (!isTemporaryFolder(folder)) return;
  const names = await readdir(folder).catch(() => []);
  const wires = names.filter((name) => /^wire-[0-9]+$/.test(name));
  await Promise.all(wires.map(async (name) => rm(join(folder, name), { force: true })));
  await rmdir(folder).catch(() => {});
}

const wiresNote = (directory: string): string => join(networkFolder(directory), "wires");

interface NetworkPlan {
  readonly directory: string;
  readonly wires: Wires;
  readonly isSandboxed: boolean;
  readonly clock: Clock;
}

/**
 * Starts what connects all of a cluster's machines: a QEMU without a machine, with a socket for each. It needs no privileges, nothing else on
 * this computer hears it, and no machine's end is its end.
 */
export async function startNetwork(qemu: Qemu, plan: NetworkPlan, signal: AbortSignal): Promise<void> {
  const files = networkFiles(plan.directory);
  await mkdir(dirname(files.disk), { recursive: true, mode: 0o700 });
  await writeFile(files.disk, "", { mode: 0o600 });
  signal.throwIfAborted();
  // Run to its end, whatever is aborted meanwhile: what it started must be known.
  const end = await qemu.system(
    [...sandboxWords(plan), ...networkWords(files, plan.wires)],
    new AbortController().signal,
  );
  if (end.status !== 0) throw qemuFailure(`${qemu.systemName} for the private network`, end);
  await awaitWires(plan, signal);
}

function networkWords({ disk, pid }: ProcessFiles, wires: Wires): readonly string[] {
  const connections = Array.from({ length: wires.count }, (_, place) => [
    ["-netdev", `stream,id=wire${place},server=on,addr.type=unix,addr.path=${escaped(wirePath(wires, place))}`],
    ["-netdev", `hubport,id=port${place},hubid=0,netdev=wire${place}`],
  ]);
  // The disk is empty, and never read: without it, a process that was only beginning when all was removed can't go on. See removeCreation.
  const file = { driver: "file", "node-name": "disk", filename: disk, "read-only": true };
  const rest = ["-blockdev", JSON.stringify(file), "-pidfile", pid, "-daemonize"];
  return ["-nodefaults", "-no-user-config", "-display", "none", "-machine", "none", ...connections.flat(2), ...rest];
}

/** They may come after QEMU has gone to the background; a machine that comes before would never be connected. */
async function awaitWires({ wires, clock }: NetworkPlan, signal: AbortSignal): Promise<void> {
  const paths = Array.from({ length: wires.count }, (_, place) => wirePath(wires, place));
  for (const deadlineMs = clock.now() + patienceMs; !(await areThere(paths)); await clock.sleep(pauseMs, signal)) {
    if (clock.now() <= deadlineMs) continue;
    throw new ClusterError("engine-failed", "QEMU does not make the sockets of the machines' private network.", {
      hint: "Name a folder on a local disk, with a short path, by TMPDIR.",
      facts: { folder: wires.folder },
    });
  }
}

async function areThere(paths: readonly string[]): Promise<boolean> {
  return await Promise.all(paths.map(async (path) => access(path))).then(
    () => true,
    () => false,
  );
}
