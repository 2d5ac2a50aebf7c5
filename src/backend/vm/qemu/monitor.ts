import { symlink } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { errorCode } from "../../../system/error-code.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import { systemTemporaryFolder } from "../../../system/files/temporary-folder.ts";

/** QEMU answers in milliseconds, on a busy computer in seconds. */
const limitMs = 5_000;
const pauseMs = 20;
/** What a socket's address may hold at the most (macOS: 104 bytes with the NUL, Linux: 108). */
const longestPathBytes = 103;
/** EAGAIN by the system; Bun 1.4.4 calls it ECONNREFUSED. */
const refusals: ReadonlySet<string> = new Set(["EAGAIN", "ECONNREFUSED"]);
const statusId = "status";

/** The name of a machine's monitor socket in its folder: QEMU is started there, since the whole path may be too long for a socket. */
export const monitorName = "monitor.sock";

export const monitorOptions = [
  ["-chardev", `socket,id=monitor,path=${monitorName},server=on,wait=off`],
  ["-mon", "chardev=monitor,mode=control"],
] as const;

/**
 * The run state of the machine in this folder, by the name that QMP has for it, such as `running` or `internal-error`. `undefined`: it didn't answer, as
 * QEMUs of earlier versions of this program, which have no monitor. https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html#qapidoc-RunState
 */
export async function queryRunState(folder: string): Promise<string | undefined> {
  try {
    return await withShortPath(folder, queryAt);
  } catch {
    return undefined;
  }
}

/** Reaches the folder by a link with a short path where its own one is too long. */
async function withShortPath<Result>(folder: string, work: (socketPath: string) => Promise<Result>): Promise<Result> {
  const path = join(folder, monitorName);
  if (Buffer.byteLength(path) <= longestPathBytes) return await work(path);
  await using short = await systemTemporaryFolder();
  const link = join(short.path, "machine");
  await symlink(folder, link);
  return await work(join(link, monitorName));
}

/** QEMU talks to one client at a time and lets one more wait; all others are refused. */
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

/** Between the answers stand QEMU's greeting and what happens meanwhile. */
async function readStatus(socket: Socket): Promise<string | undefined> {
  for await (const line of createInterface(socket)) {
    const answer: unknown = JSON.parse(line);
    if (!isMapping(answer) || answer["id"] !== statusId) continue;
    const { return: result } = answer;
    return isMapping(result) && typeof result["status"] === "string" ? result["status"] : undefined;
  }
  return undefined;
}
