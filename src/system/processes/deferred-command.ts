import { spawn } from "node:child_process";
import type { Environment } from "../runtime.ts";
import type { ProgramEnd } from "./run-program.ts";

/** A command that waits for its moment in a process of its own. */
export interface DeferredCommand {
  /** Runs it now. Resolves with any exit status. */
  run(): Promise<ProgramEnd>;
}

/**
 * Prepares a command that undoes something. It runs when told to, or when this process dies before that, even by SIGKILL: the command's process waits
 * for the end of a pipe that only this process can write to.
 */
export function deferCommand(argv: readonly [string, ...string[]], environment: Environment): DeferredCommand {
  const child = spawn("/bin/sh", ["-c", 'read -r _ || :; exec "$@"', "sh", ...argv], {
    env: { ...environment },
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const ended = Promise.withResolvers<number | null>();
  child.once("error", ended.reject).once("close", ended.resolve);
  const written = { stderr: "" };
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (written.stderr += chunk));
  child.stdin.on("error", () => {});
  return {
    run: async () => {
      child.stdin.end();
      const status = await ended.promise;
      return { status: status ?? undefined, stdout: "", stderr: written.stderr };
    },
  };
}
