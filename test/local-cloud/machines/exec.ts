/** One command that somebody runs over SSH on an in-process machine. Nothing of it runs on the host. */
export interface Exec {
  readonly machine: ExecMachine;
  readonly user: string;
  readonly command: string;
  /** All of stdin, once the caller has closed it. */
  readonly stdin: Promise<Uint8Array>;
}

export interface ExecMachine {
  readonly instanceId: string;
  readonly hostname: string;
  readonly privateAddress: string;
  readonly publicAddress: string;
  /** The next connection is shown this key; the present ones live on. Returns the public half as one line. */
  readonly replaceHostKey: (privateKey: string) => string;
}

export interface ExecResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Answers the commands of all machines. `signal` fires when the caller has gone. */
export type ExecHandler = (exec: Exec, signal: AbortSignal) => Promise<ExecResult>;

/** What a user's login shell does with each command before, or instead of, what a POSIX shell without start-up files would do. */
export interface LoginShell {
  /** Printed by its start-up files. */
  readonly before?: { readonly stdout?: string; readonly stderr?: string };
  /** What it does instead of the command. */
  readonly instead?: ExecResult;
}
