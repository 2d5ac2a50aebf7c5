/** How the stand-ins for QEMU do what `-daemonize` says. */
import { dlopen } from "bun:ffi";
import { spawn } from "node:child_process";
import { openSync, writeSync } from "node:fs";

/** No test needs a machine for longer. One whose test was killed ends then, because nobody else ends it. */
const longestLifeMs = 15 * 60_000;
setTimeout(() => process.kill(process.pid, "SIGKILL"), longestLifeMs).unref();

/** Writes the process file, and locks it until this process ends, as QEMU does. */
export function holdProcessFile(path: string): void {
  const file = openSync(path, "w");
  dlopen("libc.so.6", { flock: { args: ["i32", "i32"], returns: "i32" } }).symbols.flock(
    file,
    exclusive,
  );
  writeSync(file, String(process.pid));
}

const exclusive = 2;

/**
 * Starts the program again without `-daemonize`, in the background. Returns once its process file is written: like QEMU's, it exists a moment
 * before. Sets the exit status if the program ends instead. `argv` are the words that start it, without QEMU's.
 */
export async function daemonize(argv: readonly string[], words: readonly string[]): Promise<void> {
  const pidFile = words[words.indexOf("-pidfile") + 1] ?? "";
  const serving = words.filter((word) => word !== "-daemonize");
  const machine = spawn(process.execPath, [...argv, ...serving], {
    detached: true,
    stdio: "ignore",
  });
  machine.unref();
  const isFound = (): boolean => Bun.file(pidFile).size > 0;
  while (!isFound() && machine.exitCode === null && machine.signalCode === null)
    await Bun.sleep(10);
  if (!isFound()) process.exitCode = 1;
}
