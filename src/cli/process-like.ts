/** What of the process the program touches: handed in by bin, so that nothing else names the global. */
export type ProcessLike = Pick<
  NodeJS.Process,
  "argv" | "env" | "cwd" | "pid" | "kill" | "on" | "off" | "stdin" | "stdout" | "stderr"
> & { exitCode?: number | string | null | undefined };
