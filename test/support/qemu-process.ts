import { readFile } from "node:fs/promises";

/**
 * Starts a process that has a machine's process file on its command line and holds a lock on it, as QEMU does, and runs this script. Several may share the
 * lock. Resolves once it has the lock.
 */
export async function startQemuProcess(pidFile: string, script = "read _") {
  const locked = `exec 9>>"$2"; flock -s 9; echo locked; exec >/dev/null; ${script}`;
  const words = ["sh", "-c", locked, "qemu", "-pidfile", pidFile];
  const child = Bun.spawn(words, { stdin: "pipe", stdout: "pipe", stderr: "ignore" });
  await child.stdout.getReader().read();
  return child;
}

/** Starts a process that only has the process file on its command line, as any user's can. */
export async function startForeignProcess(pidFile: string) {
  const child = Bun.spawn(["sh", "-c", "read _", "qemu", "-pidfile", pidFile], {
    stdin: "pipe",
    stdout: "ignore",
  });
  while ((await readFile(`/proc/${child.pid}/cmdline`, "utf8").catch(() => "-")) === "")
    await Bun.sleep(1);
  return child;
}
