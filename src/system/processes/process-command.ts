import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { systemEnvironment } from "./child-environment.ts";
import { readOwnText } from "../files/read-text.ts";

/** The command line of a running process, its words joined by spaces. `undefined`: there is no such process. */
export async function commandOfProcess(pid: number): Promise<string | undefined> {
  try {
    const words = await readOwnText(`/proc/${pid}/cmdline`);
    // A process that has ended but has not been reaped has none.
    return words === "" ? undefined : words.replaceAll("\0", " ").trim();
  } catch {
    return await commandFromPs(pid);
  }
}

/** macOS has no /proc. */
async function commandFromPs(pid: number): Promise<string | undefined> {
  return await promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", String(pid)], {
    env: systemEnvironment,
  }).then(
    ({ stdout }) => (stdout.trim() === "" ? undefined : stdout.trim()),
    () => undefined,
  );
}

/** Uses the shell's built-in `kill`, which every machine has. It doesn't matter whether the process still existed. */
export async function signalProcess(pid: number, name: "TERM" | "KILL"): Promise<void> {
  const script = 'kill -"$1" "$2" 2>/dev/null || :';
  await promisify(execFile)("/bin/sh", ["-c", script, "sh", name, String(pid)], { env: systemEnvironment });
}
