import type { Subprocess } from "bun";
import type { Environment } from "../runtime.ts";
import { minimalEnvironment } from "./run-program.ts";

/** Its stdin ends when the program that holds the other end does. It outlives the signals of a terminal. */
const watcher = `trap '' HUP INT QUIT TERM; read -r _; kill "$1"`;

/**
 * Tells a child to end if this program is killed, which no handler here can notice: an ssh would hold the user's terminal, in raw mode, and a `cat` take what is
 * typed for the next program.
 */
export function endWithThisProgram(child: Subprocess, environment: Environment): void {
  const watching = Bun.spawn(["/bin/sh", "-c", watcher, "sh", String(child.pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    env: minimalEnvironment(environment),
  });
  watching.unref();
  // Its number may be another's afterwards.
  child.exited.then(() => watching.kill("SIGKILL")).catch(() => {});
}
