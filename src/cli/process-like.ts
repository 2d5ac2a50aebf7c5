/** The parts of the process that the program uses. bin passes them in, so that nothing else uses the global. */
export type ProcessLike = Pick<
  NodeJS.Process,
  "argv" | "env" | "cwd" | "pid" | "kill" | "on" | "off" | "stdin" | "stdout" | "stderr"
> & {
  exitCode?: number | string | null | undefined;
  /** Node's own parts, by name. */
  binding?(name: "tty_wrap"): { isTTY?(descriptor: number): boolean };
};
