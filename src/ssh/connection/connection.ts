/** One open way into one node. The implementation over ssh2 is in open-connection.ts. */
export interface Connection extends AsyncDisposable {
  /** Whether commands can be sent: false once the connection was lost or disposed of. */
  readonly isOpen: boolean;
  /**
   * Runs a command. Every exit status resolves; only a lost connection, an aborted signal or a passed limit rejects (`connection-failed`,
   * transient; or the signal's reason). `argv` is quoted by quote.ts; secrets go through `stdin`, never through `argv` or `environment`.
   */
  run(request: RemoteCommand, signal: AbortSignal): Promise<RemoteResult>;
  /** Sends a file or a text to an absolute path, whole or not at all (written beside it, then renamed), as root where `sudo` is set. */
  upload(source: UploadSource, target: UploadTarget, signal: AbortSignal): Promise<void>;
}

export interface RemoteCommand {
  readonly argv: readonly string[];
  readonly cwd?: string;
  /** Public values only: they can be seen on the node. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Runs as root (`sudo -n` where the login user is another). */
  readonly sudo?: boolean;
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Milliseconds without an end after which the command is given up (`deadline-passed`). */
  readonly limitMs?: number;
  /** What it does, for the message that it was given up, such as "replacing its host key"; without it, its first words stand there. */
  readonly task?: string;
  /** Its output is told to nobody at any verbosity: it holds secrets, or is encoded. */
  readonly isOutputHidden?: boolean;
  readonly onOutput?: (stream: "stdout" | "stderr", chunk: string) => void;
}

export interface RemoteResult {
  /** 128 + signal number where the command was ended by a signal. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type UploadSource = { readonly file: string } | { readonly text: string };

export interface UploadTarget {
  readonly path: string;
  /** Such as 0o600. */
  readonly mode: number;
  readonly sudo?: boolean;
  readonly onProgress?: (sentBytes: number, totalBytes: number) => void;
}
