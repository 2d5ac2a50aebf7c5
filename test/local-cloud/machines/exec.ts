/** A command that is run over SSH on an in-process machine. It doesn't run on the host. */
export interface Exec {
  readonly machine: ExecMachine;
  readonly user: string;
  readonly command: string;
  /** The whole stdin, after the caller has closed it. */
  readonly stdin: Promise<Uint8Array>;
}

export interface ExecMachine {
  readonly instanceId: string;
  readonly hostname: string;
  readonly privateAddress: string;
  readonly publicAddress: string;
  /** Replaces the host key for new connections; existing ones stay open. Returns the public key as one line. */
  readonly replaceHostKey: (privateKey: string) => string;
}

export interface ExecResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Answers the commands of all machines. `signal` is aborted when the caller disconnects. */
export type ExecHandler = (exec: Exec, signal: AbortSignal) => Promise<ExecResult>;

/** How a user's login shell differs from a POSIX shell without start-up files. */
export interface LoginShell {
  /** The output of its start-up files. */
  readonly before?: { readonly stdout?: string; readonly stderr?: string };
  /** What it does instead of running the command. */
  readonly instead?: ExecResult;
}
