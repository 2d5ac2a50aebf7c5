import { readFile } from "node:fs/promises";

/**
 * Starts a process that has a machine's process file on its command line, as QEMU has, and runs this script. Resolves once the command line can be
 * read: on Linux, the parent continues before that.
 */
export async function startQemuProcess(pidFile: string, script = "read _") {
  const words = ["sh", "-c", script, "qemu", "-pidfile", pidFile];
  const child = Bun.spawn(words, { stdin: "pipe", stdout: "ignore", stderr: "ignore" });
  while ((await readFile(`/proc/${child.pid}/cmdline`, "utf8").catch(() => "-")) === "") await Bun.sleep(1);
  return child;
}
