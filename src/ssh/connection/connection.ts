import type { FileFacts } from "../../system/files/listed-file.ts";
import type { Target } from "./connection-errors.ts";

/** An open connection to one node. The implementation over ssh2 is in open-connection.ts. */
export interface Connection extends AsyncDisposable {
  /** Whether commands can be sent: false once the connection is lost or disposed of. */
  readonly isOpen: boolean;
  /**
   * Runs a command. Resolves with any exit status; rejects only after a lost connection
   * (`connection-failed`, transient), an aborted signal (the signal's reason) or an exceeded limit.
   * shell-text.ts quotes `argv`; pass secrets through `stdin`, never through `argv` or
   * `environment`.
   */
  run(request: RemoteCommand, signal: AbortSignal): Promise<RemoteResult>;
  /** Sends a file or a text to an absolute path, all or nothing. Writes as root if `sudo` is set. */
  upload(source: UploadSource, target: UploadTarget, signal: AbortSignal): Promise<void>;
  /** Connects from the node to a port. Rejects with a plain error if nobody answers there. */
  openPort(address: PortAddress, signal: AbortSignal): Promise<PortStream>;
}

/** A `Duplex`, without node:stream's types, which users of the library needn't have. */
export type PortStream = NodeJS.ReadWriteStream & { destroy(): unknown };

export interface PortAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * For commands that take a second on an idle computer, and minutes on a busy one: after this time,
 * the node hangs. One that is lost is noticed earlier, by its silence.
 */
export const commandLimitMs = 10 * 60_000;

export interface RemoteCommand {
  readonly argv: readonly string[];
  readonly cwd?: string | undefined;
  /** Public values only: they are visible on the node. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Runs as root (with `sudo -n` if the login user isn't root). */
  readonly sudo?: boolean;
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Says that a stdin that is a stream has at most 60 KiB, and ends. A text or an array is measured. */
  readonly isStdinShort?: boolean;
  /** Milliseconds after which an unfinished command is given up (`deadline-passed`). */
  readonly limitMs?: number | undefined;
  /**
   * Describes the command in the message that it was given up, such as "replacing its host key";
   * default: its first words.
   */
  readonly task?: string;
  /** Never shows the output, at any verbosity, because it holds secrets or is encoded. */
  readonly isOutputHidden?: boolean;
  /** Of a command whose output is hidden: whether the caller will show any of this result. Default: it will. */
  readonly isQuoted?: (result: RemoteResult) => boolean;
  /**
   * Receives stdout as bytes, no faster than it reads them; `stdout` of the result is then empty,
   * and no output is shown. The stream ends with the command. If this rejects, the command is
   * ended, and `run` rejects with the same error.
   */
  readonly receive?: (stdout: AsyncIterable<Uint8Array>) => Promise<void>;
  /** If it returns a promise, that stream pauses until the promise resolves. */
  readonly onOutput?: (stream: "stdout" | "stderr", chunk: string) => void | Promise<void>;
  /** Whether the user learns which processes hold the output open after the command has ended. */
  readonly namesHolders?: boolean;
  /** How many characters the result has of each stream, at most: the last ones. Default: 4 Mi. */
  readonly keptCharacters?: number;
}

export interface RemoteResult {
  /** 128 + the signal number if a signal ended the command. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type UploadSource = { readonly file: FileFacts } | { readonly text: string };

export interface UploadTarget {
  readonly path: string;
  /** Such as 0o600. */
  readonly mode: number;
  readonly sudo?: boolean;
  readonly onProgress?: (sentBytes: number, totalBytes: number) => void;
}

/** The part of a node's record that SSH needs; every NodeRecord is one. */
export interface Destination {
  readonly id: string;
  readonly role: string;
  readonly index: number;
  readonly ssh: Omit<Target, "name">;
}

/** Returns the node as SSH and its messages need it. */
export function targetOf({ role, index, ssh }: Destination): Target {
  return { name: `${role}_${index}`, ...ssh };
}
