import { rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Makes sure that no living process has a local cloud with this folder, then claims it. What a dead one left may be removed
 * after that. Throws when somebody lives.
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

/** When a process began, as ps words it, so that a number used again isn't mistaken for it; undefined: no such process. */
function startOf(pid: number): string | undefined {
  const { success, stdout } = Bun.spawnSync(["ps", "-o", "lstart=", "-p", String(pid)]);
  return success ? stdout.toString().trim().replaceAll(/\s+/g, " ") : undefined;
}
