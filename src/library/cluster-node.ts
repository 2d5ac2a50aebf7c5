import { posix, resolve } from "node:path";
import { checkTarget, fetchFile } from "../cluster/fetch.ts";
import { parseSendRequest, sendFiles } from "../cluster/copy/send-files.ts";
import { assertRuns } from "../cluster/find-cluster.ts";
import { runUntil } from "../cluster/run/run-until.ts";
import { ClusterError, quoted, assertExpected } from "../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  type Role,
  nodeReference,
} from "../model/cluster-record.ts";
import {
  type Shape,
  anyText,
  callback,
  flag,
  listOf,
  mappingOf,
  milliseconds,
  optional,
  readArguments,
  required,
  signal as signalCheck,
  text,
  textOrBytes,
  textOrTexts,
  textThat,
} from "../model/read-arguments.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import type { Connection, RemoteCommand } from "../ssh/connection/connection.ts";
import { createToken, sealed, sealedCommand } from "../ssh/session/session-line.ts";
import { checkedVariableName, quote, variableNameProblem } from "../ssh/shell-text.ts";
import { accepted } from "../model/checked.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { outsideLines } from "../system/printable.ts";
import { systemClock } from "../system/runtime.ts";
import { eitherSignal } from "../system/time-limit.ts";
import { inLibraryWords, signalOf } from "./call-options.ts";
import type { SharedConnections } from "./runtime.ts";

/** A file or folder to bring back from a node. */
export interface NodeFetch {
  /** Absolute path on the node. A link there is followed; links inside a folder stay links. */
  readonly remote: string;
  /**
   * Path of the new file or folder on this computer, relative to the current folder. A file replaces an existing file,
   * but no folder may exist there.
   */
  readonly local: string;
  /** When aborted, ends the transfer and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

/** How much was copied. */
export interface NodeSendResult {
  readonly files: number;
  readonly bytes: number;
}

/** The size of a file or folder that was fetched. */
export interface NodeFetchResult extends NodeSendResult {
  /** Files that became shorter while they were read, at most ten: zeros are in the place of what is missing. */
  readonly shrunk: readonly string[];
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
  readonly #cluster: Pick<ClusterRecord, "id">;
  readonly #connections: SharedConnections;

  constructor(
    record: NodeRecord,
    cluster: Pick<ClusterRecord, "id">,
    connections: SharedConnections,
  ) {
    this.reference = nodeReference(record);
    this.role = record.role;
    this.id = record.id;
    this.publicAddress = record.publicAddress;
    this.privateAddress = record.privateAddress;
    this.#record = record;
    this.#cluster = cluster;
    this.#connections = connections;
  }

  /**
   * Runs a command on the node and resolves with its output. Throws a ClusterError: `remote-command-failed` if the exit
   * status isn't 0 (`facts` holds `status`, `stdout` and `stderr`), `bad-usage`, `deadline-passed`, `node-stopped`,
   * `connection-failed`, `key-missing`, `host-key-changed`.
   */
  async run(command: NodeCommand): Promise<NodeCommandResult> {
    const request = readArguments(command, shape);
    const thrown = new AbortController();
    using either = eitherSignal([signalOf(request), thrown.signal]);
    const { signal } = either;
    return await this.#use(signal, async (connection) => {
      const remote = remoteCommand(request, (error) => thrown.abort(error));
      const { status, stdout, stderr } = await connection.run(remote, signal);
      thrown.signal.throwIfAborted();
      if (status === 0 || request.reject === false) return { status, stdout, stderr };
      throw commandFailed(request, this.reference, { status, stdout, stderr });
    });
  }

  /**
   * Brings a file or folder from the node to this computer, all or nothing, as root. Rejects links that lead out of the
   * folder, and names that aren't plain. Throws `bad-usage`, `transfer-failed`, `connection-failed`, `key-missing`,
   * `host-key-changed`.
   */
  async fetch(request: NodeFetch): Promise<NodeFetchResult> {
    const { remote, local, ...options } = readArguments(request, fetchShape);
    const signal = signalOf(options);
    const target = accepted(await checkTarget({ remote, local: resolve(local) }));
    return await this.#use(signal, async (connection) =>
      fetchFile(target, { connection, node: this.reference, settings: [] }, signal),
    );
  }

  /**
   * Copies files and folders of this computer to the node, all or nothing, as root. Existing files
   * are replaced, and the other files of existing folders stay. Throws `bad-usage`,
   * `transfer-failed`, `connection-failed`, `key-missing`, `host-key-changed`.
   */
  async send(request: NodeSend): Promise<NodeSendResult> {
    const { local, remote, ...options } = readArguments(request, sendShape);
    const signal = signalOf(options);
    const sources = typeof local === "string" ? [local] : local;
    const files = accepted(await parseSendRequest(sources, remote, { cwd: resolve(), signal }));
    return await this.#use(signal, async (connection) =>
      sendFiles(files, { connection, node: this.reference }, signal),
    );
  }

  /**
   * Runs a command again and again, a second apart, until it succeeds, and resolves with its last output. A node that
   * can't be reached is tried again. Throws what `run` throws the last time, or `deadline-passed`.
   */
  async waitUntil(command: NodeWait): Promise<NodeCommandResult> {
    const { timeoutMs, ...request } = readArguments(command, waitShape);
    const attempt = async (cancelSignal: AbortSignal) => {
      const result = await this.run({ ...request, reject: false, cancelSignal });
      return { result, isDone: result.status === 0 };
    };
    const rule = { limitMs: timeoutMs, clock: systemClock };
    const { result } = await inLibraryWords(async () => runUntil(attempt, rule, signalOf(request)));
    if (result.status === 0) return result;
    throw commandFailed(request, this.reference, result);
  }

  async #use<Result>(
    signal: AbortSignal,
    work: (connection: Connection) => Promise<Result>,
  ): Promise<Result> {
    const connected = async (connections: ConnectionPool): Promise<Result> => {
      assertRuns(this.#cluster, this.#record);
      return work(await connections.connect(this.#record, signal));
    };
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

/** Files and folders to copy to a node. */
export interface NodeSend {
  /** Paths on this computer, relative to the current folder. Links are followed. */
  readonly local: string | readonly string[];
  /**
   * Absolute path on the node. If it ends with `/`, it is the folder for all sources; otherwise the
   * new path of the only one.
   */
  readonly remote: string;
  /** When aborted, ends the transfer and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

const sendShape: Shape<NodeSend> = {
  local: required(textOrTexts),
  remote: required(text),
  cancelSignal: optional(signalCheck),
};

/** A command to run on a node. */
export interface NodeCommand {
  /**
   * The program and its arguments, passed on exactly: no shell reads them. For a shell line, pass
   * `["sh", "-c", line]`.
   */
  readonly args: readonly string[];
  /**
   * Variables for the command, by name. They may be secrets: they never appear in an argument list,
   * here or on the node.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path on the node; default: the home folder of the login user. */
  readonly cwd?: string;
  /** The command's stdin; default: empty. */
  readonly input?: string | Uint8Array;
  /**
   * Whether it runs as root, like all commands of `cluster-cloud run`; default: true. Otherwise it
   * runs as the image's login user.
   */
  readonly asRoot?: boolean;
  /** Whether a status other than 0 throws; default: true. */
  readonly reject?: boolean;
  /**
   * Milliseconds, from the login on, after which the command and everything that it started are
   * ended (`deadline-passed`); default: no limit.
   */
  readonly timeoutMs?: number;
  /** When aborted, ends the command on the node and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
  /**
   * Called with output as it arrives, in chunks that may be partial lines. If it throws, the
   * command is ended, and `run` throws the same.
   */
  readonly onOutput?: (stream: "stdout" | "stderr", chunk: string) => void;
}

/** A command to repeat until it succeeds. */
export interface NodeWait extends Omit<NodeCommand, "reject" | "onOutput"> {
  /** Milliseconds after which the command is no longer repeated. */
  readonly timeoutMs: number;
}

/** The result of a command. */
export interface NodeCommandResult {
  /** The exit status, or 128 + the signal number if a signal ended the command. */
  readonly status: number;
  /**
   * The whole output, decoded as UTF-8, including the last newline. If it is longer than 4 Mi
   * characters, only the end is kept.
   */
  readonly stdout: string;
  readonly stderr: string;
}

/** A command to run on several nodes. */
export interface ClusterCommand extends Omit<NodeCommand, "reject" | "onOutput"> {
  /**
   * Names such as `agent_0`, addresses or ids of nodes, or `all`, `masters`, `agents`,
   * `public_agents`; default: all.
   */
  readonly nodes?: readonly string[];
}

/** The result of a command on one of several nodes. */
export interface ClusterCommandResult extends NodeCommandResult {
  /** The node's reference. */
  readonly node: string;
  /**
   * Why the command has no exit status of its own, such as `connection-failed`; its `status` is 255
   * then. Undefined if it has one.
   */
  readonly error: ClusterError | undefined;
}

const withoutNull = (given: unknown): string | undefined =>
  anyText(given) ??
  (String(given).includes("\0") ? "the value contains a null character" : undefined);

const shape: Shape<NodeCommand> = {
  args: required(listOf(withoutNull, { minimum: 1 })),
  env: optional(mappingOf(withoutNull, (name) => variableNameProblem(String(name)))),
  cwd: optional(
    textThat((path) =>
      posix.isAbsolute(path) ? undefined : `${quoted(path)} is not an absolute path`,
    ),
  ),
  input: optional(textOrBytes),
  asRoot: optional(flag),
  reject: optional(flag),
  timeoutMs: optional(milliseconds),
  cancelSignal: optional(signalCheck),
  onOutput: optional(callback),
};

const { reject: _reject, onOutput: _onOutput, ...shared } = shape;
const waitShape: Shape<NodeWait> = { ...shared, timeoutMs: required(milliseconds) };
const clusterShape: Shape<ClusterCommand> = {
  ...shared,
  nodes: optional(listOf(text, { minimum: 1 })),
};

/** Throws `bad-usage` with every problem. */
export const readClusterCommand = (given: ClusterCommand): ClusterCommand =>
  readArguments(given, clusterShape);

const nodesAtOnce = 64;

export async function runOnEach(
  nodes: readonly ClusterNode[],
  { nodes: _, ...command }: ClusterCommand,
): Promise<readonly ClusterCommandResult[]> {
  const signal = signalOf(command);
  const run = async (node: ClusterNode): Promise<ClusterCommandResult> => {
    try {
      return {
        node: node.reference,
        error: undefined,
        ...(await node.run({ ...command, reject: false })),
      };
    } catch (error) {
      assertExpected(error, signal);
      return { node: node.reference, status: 255, stdout: "", stderr: "", error };
    }
  };
  return await mapConcurrently(nodes, nodesAtOnce, run, signal);
}

/**
 * A node's shell gets the command as one argument, for which Linux has a limit of 128 KiB. Quoting
 * may make it several times as long.
 */
const longestLine = 24 * 1024;

function remoteCommand(command: NodeCommand, onThrown: (error: unknown) => void): RemoteCommand {
  const { args, env = {}, cwd, input, asRoot = true, timeoutMs, onOutput } = command;
  const isPlain = Object.keys(env).length === 0 && Buffer.byteLength(quote(args)) <= longestLine;
  const { argv, stdin } = isPlain ? { argv: args, stdin: input } : withVariables(args, env, input);
  return {
    argv,
    sudo: asRoot,
    namesHolders: true,
    stdin,
    cwd,
    limitMs: timeoutMs,
    ...(onOutput !== undefined && {
      // Ignores what the caller's function returns.
      onOutput: (stream: "stdout" | "stderr", chunk: string) => {
        try {
          onOutput(stream, chunk);
        } catch (error) {
          onThrown(error);
        }
      },
    }),
  };
}

/**
 * Sends the command and its variables ahead of the command's own stdin. If the transfer is cut off,
 * the last line is missing, and the command doesn't run.
 */
function withVariables(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: NodeCommand["input"],
) {
  const token = createToken();
  const settings = Object.entries(env).map(
    ([name, value]) => `export ${checkedVariableName(name)}=${quote([value])}\n`,
  );
  const script = Buffer.from(sealed(`${settings.join("")}exec ${quote(args)}\n`, token));
  return {
    argv: sealedCommand(token, script.length),
    stdin: Buffer.concat([script, Buffer.from(input ?? "")]),
  };
}

const shownLines = 20;

function commandFailed(
  { args }: NodeCommand,
  reference: string,
  result: NodeCommandResult,
): ClusterError {
  const lines = outsideLines(result.stderr, shownLines).map((line) => `  ${line}`);
  const output = lines.length === 0 ? "." : `:\n${lines.join("\n")}`;
  return new ClusterError(
    "remote-command-failed",
    `${reference}: ${args[0]} exited with status ${result.status}${output}`,
    {
      hint: "Pass `reject: false` to get every exit status as a result.",
      facts: { node: reference, ...result },
    },
  );
}
