import { rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Claims the folder for a local cloud of this process. Throws if a running process has claimed it. After that, the
 * remains of an earlier cloud of this folder may be removed.
 */
export async function claimDirectory(directory: string): Promise<AsyncDisposable> {
  const path = join(directory, "local-cloud.pid");
  const former = await Bun.file(path)
    .text()
    .catch(() => "");
  const [pid, ...started] = former.trim().split(" ");
  if (pid !== undefined && pid !== "" && startOf(Number(pid)) === started.join(" ")) {
    throw new Error(`process ${pid} has a local cloud with the folder ${directory}`);
  }
  await Bun.write(path, `${process.pid} ${startOf(process.pid)}\n`);
  return { [Symbol.asyncDispose]: async () => rm(path, { force: true }) };
}

/**
 * The start time of a process, as ps prints it, to detect a reused process id; undefined if there is no such process.
 */
function startOf(pid: number): string | undefined {
  const { success, stdout } = Bun.spawnSync(["ps", "-o", "lstart=", "-p", String(pid)]);
  return success ? stdout.toString().trim().replaceAll(/\s+/g, " ") : undefined;
}
