import { posix, resolve } from "node:path";
import { quoted } from "../../errors.ts";
import {
  optional,
  readArguments,
  required,
  type Shape,
  signal as signalCheck,
  text,
  textThat,
} from "../../model/read-arguments.ts";
import { accepted } from "../../system/checked.ts";
import { fetchFile } from "../fetch/fetch-file.ts";
import { checkTarget } from "../fetch/fetch-request.ts";
import type { NodeCommand, NodeCommandResult } from "./node-command.ts";
import { inLibraryWords } from "./library-words.ts";
import { readNodeCommand, runCommand } from "./node-command.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import type { NodeRecord, Role } from "../../model/cluster-record.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { SharedConnections } from "./shared-connections.ts";

/** A file or folder to bring back from a node. */
export interface NodeFetch {
  /** Absolute path on the node. A link there is followed; links inside a folder stay links. */
  readonly remote: string;
  /**
   * Path of the new file or folder on this machine, relative to the current folder. A file replaces an existing file,
   * but no folder may exist there.
   */
  readonly local: string;
  /** When aborted, ends the transfer and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

/** What was brought back. */
export interface NodeFetchResult {
  readonly files: number;
  readonly bytes: number;
}

/** A machine of a cluster. */
export class ClusterNode {
  /** `master_0`, `agent_2`, `public_agent_0`. */
  readonly reference: string;
  readonly role: Role;
  /** The backend's own name of the machine, such as an EC2 instance id. */
  readonly id: string;
  /** Undefined if the node has none. */
  readonly publicAddress: string | undefined;
  readonly privateAddress: string | undefined;
  readonly #record: NodeRecord;
  readonly #connections: SharedConnections;

  constructor(record: NodeRecord, connections: SharedConnections) {
    this.reference = nodeReference(record);
    this.role = record.role;
    this.id = record.id;
    this.publicAddress = record.publicAddress;
    this.privateAddress = record.privateAddress;
    this.#record = record;
    this.#connections = connections;
  }

  /**
   * Runs a command on the node and resolves with its output. Throws a ClusterError: `remote-command-failed` if the exit
   * status isn't 0 (`facts` holds `status`, `stdout` and `stderr`), `bad-usage`, `deadline-passed`,
   * `connection-failed`, `key-missing`, `host-key-changed`.
   */
  async run(command: NodeCommand): Promise<NodeCommandResult> {
    const request = readNodeCommand(command);
    const signal = request.cancelSignal ?? new AbortController().signal;
    return await this.#use(signal, async (connection) =>
      runCommand(request, { connection, reference: this.reference }, signal),
    );
  }

  /**
   * Brings a file or folder from the node to this machine, all or nothing, as root. Rejects links that lead out of the
   * folder, and names that aren't plain. Throws `bad-usage`, `transfer-failed`, `connection-failed`, `key-missing`,
   * `host-key-changed`.
   */
  async fetch(request: NodeFetch): Promise<NodeFetchResult> {
    const { remote, local, cancelSignal } = readArguments(request, fetchShape);
    const signal = cancelSignal ?? new AbortController().signal;
    const target = accepted(await checkTarget({ remote, local: resolve(local) }));
    return await this.#use(signal, async (connection) =>
      fetchFile(target, { connection, node: this.reference, settings: [] }, signal),
    );
  }

  async #use<Result>(signal: AbortSignal, work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const connected = async (connections: ConnectionPool): Promise<Result> =>
      work(await connections.connect(this.#record, signal));
    return await inLibraryWords(async () => this.#connections.use(connected));
  }
}

const fetchShape: Shape<NodeFetch> = {
  remote: required(
    textThat((path) => {
      if (!posix.isAbsolute(path)) return `${quoted(path)} is not an absolute path`;
      return /\p{Cc}/u.test(path) ? "a path cannot contain control characters" : undefined;
    }),
  ),
  local: required(text),
  cancelSignal: optional(signalCheck),
};
