import { symlink } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { errorCode } from "../../../system/error-code.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import { systemTemporaryFolder } from "../../../system/files/temporary-folder.ts";

/** QEMU answers in milliseconds, or in seconds on a busy computer. */
const limitMs = 5_000;
const pauseMs = 20;
/** The maximum length of a socket's address (macOS: 104 bytes with the NUL, Linux: 108). */
const longestPathBytes = 103;
/** The system reports EAGAIN; Bun 1.4.4 calls it ECONNREFUSED. */
const refusals: ReadonlySet<string> = new Set(["EAGAIN", "ECONNREFUSED"]);
const statusId = "status";

/** The name of a machine's monitor socket in its folder. QEMU is started in that folder, because the whole path may be too long for a socket. */
export const monitorName = "monitor.sock";

export const monitorOptions = [
  ["-chardev", `socket,id=monitor,path=${monitorName},server=on,wait=off`],
  ["-mon", "chardev=monitor,mode=control"],
] as const;

/**
 * Returns QMP's name for the run state of the machine in this folder, such as `running` or `internal-error`. Returns `undefined` if it didn't answer;
 * QEMUs started by earlier versions of this program have no monitor. https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html#qapidoc-RunState
 */
export async function queryRunState(folder: string): Promise<string | undefined> {
  try {
    return await withShortPath(folder, queryAt);
  } catch {
    return undefined;
  }
}

/** If the folder's own path is too long, reaches it through a link with a short path. */
async function withShortPath<Result>(folder: string, work: (socketPath: string) => Promise<Result>): Promise<Result> {
  const path = join(folder, monitorName);
  if (Buffer.byteLength(path) <= longestPathBytes) return await work(path);
  await using short = await systemTemporaryFolder();
  const link = join(short.path, "machine");
  await symlink(folder, link);
  return await work(join(link, monitorName));
}

/** QEMU talks to one client at a time and lets one more wait; it refuses all others. */
async function queryAt(path: string): Promise<string | undefined> {
  const limit = AbortSignal.timeout(limitMs);
  for (;;) {
    try {
      return await queryOnce(path, limit);
    } catch (error) {
      if (!refusals.has(errorCode(error) ?? "")) throw error;
      await sleep(pauseMs, undefined, { signal: limit });
    }
  }
}

async function queryOnce(path: string, signal: AbortSignal): Promise<string | undefined> {
  const socket = connect({ path, signal });
  try {
    socket.write(`{"execute":"qmp_capabilities"}\n{"execute":"query-status","id":"${statusId}"}\n`);
    return await readStatus(socket);
  } finally {
    socket.destroy();
  }
}

/** QEMU's greeting and its events appear between the answers. */
async function readStatus(socket: Socket): Promise<string | undefined> {
  for await (const line of createInterface(socket)) {
    const answer: unknown = JSON.parse(line);
    if (!isMapping(answer) || answer["id"] !== statusId) continue;
    const { return: result } = answer;
    return isMapping(result) && typeof result["status"] === "string" ? result["status"] : undefined;
  }
  return undefined;
}
