import { symlink } from "node:fs/promises";
import { type Socket, connect } from "node:net";
import { basename, join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { errorCode, folderForSockets } from "../../../system/files/private-file.ts";
import { ownedTemporaryFolder } from "../../../system/files/owned-folder.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import { outsideLine, withoutFullStop } from "../../../system/printable.ts";
import { poll } from "../../../system/retry.ts";
import { systemClock } from "../../../system/runtime.ts";
import { type Watchdog, watchdog } from "../../../system/time-limit.ts";
import { waits } from "../../../system/waits.ts";
import { filesIn, isRunning } from "../machines/machine-process.ts";

const longestAnswer = 1024 * 1024;
/** The maximum length of a socket's address (macOS: 104 bytes with the NUL, Linux: 108). */
const longestPathBytes = 103;
/** The system reports EAGAIN; Bun 1.4.4 calls it ECONNREFUSED, as if nobody listened. */
const refusals: ReadonlySet<string> = new Set(["EAGAIN", "ECONNREFUSED"]);

/**
 * The name of a machine's monitor socket in its folder. QEMU is started in that folder, because the
 * whole path may be too long for a socket.
 */
export const monitorName = "monitor.sock";

/** QEMU 11.1 has deprecated `-mon`. This form works since long before the least version. */
export const monitorOptions = [
  ["-chardev", `socket,id=monitor,path=${monitorName},server=on,wait=off`],
  ["-qmp", "chardev:monitor"],
] as const;

/**
 * Returns QMP's name for the run state of the machine in this folder, such as `running` or
 * `internal-error`. Returns `undefined` if it didn't answer; QEMUs started by earlier versions of
 * this program have no monitor.
 * https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html#qapidoc-RunState
 */
export const queryRunState = async (folder: string): Promise<string | undefined> =>
  queryRunStateWithin(folder, waits.monitor.limitMs);

export async function queryRunStateWithin(
  folder: string,
  limitMs: number,
): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(limitMs);
    const [result] = await runOnMonitor(folder, [{ execute: "query-status" }], signal);
    return statusOf(result);
  } catch {
    return undefined;
  }
}

/** The state in the answers to `query-status` and `query-migrate`. */
export const statusOf = read.field("status", read.matching(/^[a-z-]{1,32}$/));

export async function queryVersion(folder: string, signal: AbortSignal): Promise<string> {
  const [result] = await runOnMonitor(folder, [{ execute: "query-version" }], signal);
  const found = read.isMapping(result) && read.isMapping(result["qemu"]) ? result["qemu"] : {};
  return [found["major"], found["minor"], found["micro"]].join(".");
}

/** Works with a machine's socket. If the folder's own path is too long, reaches it through a link with a short path. */
export async function withShortPath<Result>(
  folder: string,
  name: string,
  work: (socketPath: string) => Promise<Result>,
): Promise<Result> {
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= longestPathBytes) return await work(path);
  await using short = await ownedTemporaryFolder(folderForSockets());
  const link = join(short.path, "machine");
  await symlink(folder, link);
  return await work(join(link, name));
}

/**
 * Connects to a socket of the QEMU in this folder, which talks to one client at a time and lets one
 * more wait. It refuses all others for as long as it runs. The signal also closes the connection.
 */
export async function openMonitor(
  { folder, path }: { readonly folder: string; readonly path: string },
  signal: AbortSignal,
): Promise<Socket> {
  const look = async (): Promise<Socket | undefined> =>
    connectTo(path, signal).catch(async (error: unknown) => {
      if (refusals.has(errorCode(error) ?? "") && (await isRunning(filesIn(folder))))
        return undefined;
      throw error;
    });
  return await poll(look, { pauseMs: waits.monitor.pauseMs, clock: systemClock }, signal);
}

async function connectTo(path: string, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ path, signal });
  const connected = Promise.withResolvers<void>();
  socket.once("error", connected.reject).once("connect", connected.resolve);
  await connected.promise;
  // A lost connection ends the lines that are read from it.
  socket.on("error", () => {});
  return socket;
}

/**
 * Runs commands of QMP on the machine in this folder, in turn, and resolves with their results.
 * Throws `engine-failed` if QEMU refuses one, says nothing for so long, or is gone.
 */
export async function runOnMonitor(
  folder: string,
  commands: readonly MonitorCommand[],
  signal: AbortSignal,
  quietMs: number = waits.monitor.limitMs,
): Promise<readonly unknown[]> {
  using quiet = watchdog(quietMs, signal);
  try {
    return await withShortPath(folder, monitorName, async (path) =>
      runAt({ folder, path }, commands, quiet),
    );
  } catch (error) {
    signal.throwIfAborted();
    const all = commands.map(({ execute }) => execute).join(", ");
    const { command, message } =
      error instanceof Refused ? error : { command: all, message: messageOf(error) };
    const why = quiet.hasExpired() ? "it does not answer" : message;
    throw new ClusterError(
      "engine-failed",
      `QEMU did not do "${command}" for ${basename(folder)}: ${why}.`,
      {
        facts: { command, ...(quiet.hasExpired() && { answers: false }) },
      },
    );
  }
}

export interface MonitorCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

async function runAt(
  at: Parameters<typeof openMonitor>[0],
  commands: readonly MonitorCommand[],
  { signal, feed }: Watchdog,
): Promise<unknown[]> {
  const socket = await openMonitor(at, signal);
  try {
    const all = [{ execute: "qmp_capabilities" }, ...commands];
    socket.write(all.map((command, id) => `${JSON.stringify({ ...command, id })}\n`).join(""));
    return (await readAnswers(socket, all, feed)).slice(1);
  } finally {
    socket.destroy();
  }
}

/** QEMU's greeting and its events appear between the answers. */
async function readAnswers(
  socket: Socket,
  commands: readonly MonitorCommand[],
  onLine: () => void,
): Promise<unknown[]> {
  const results: unknown[] = [];
  for await (const line of linesOf(socket)) {
    onLine();
    const answer: unknown = parseJson(line);
    if (!read.isMapping(answer) || answer["id"] !== results.length) continue;
    const { error } = answer;
    const command = commands[results.length]?.execute ?? "";
    if (read.isMapping(error))
      throw new Refused(command, withoutFullStop(outsideLine(error["desc"])));
    results.push(answer["return"]);
    if (results.length === commands.length) return results;
  }
  throw new Error("it ended");
}

/** QEMU may be under a guest's control, so a line that is too long for any answer ends them. */
export async function* linesOf(socket: Socket): AsyncGenerator<string, void, undefined> {
  let rest = "";
  for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) {
    const [first = "", ...others] = chunk.split("\n");
    rest += first;
    if (rest.length > longestAnswer) throw new Error("its answer is too long");
    for (const next of others) {
      yield rest;
      rest = next;
    }
  }
}

class Refused extends Error {
  readonly command: string;

  constructor(command: string, why: string) {
    super(why);
    this.command = command;
  }
}
