import { posix } from "node:path";
import { ClusterError, quoted } from "../../errors.ts";
import {
  anyText,
  callback,
  flag,
  listOf,
  mappingOf,
  milliseconds,
  optional,
  readArguments,
  required,
  type Shape,
  signal as signalCheck,
  textOrBytes,
  textThat,
} from "../../model/read-arguments.ts";
import type { Connection, RemoteCommand } from "../../ssh/connection/connection.ts";
import { quote } from "../../ssh/quote.ts";
import { createToken, sealedCommand, sealed } from "../../ssh/session/session-line.ts";
import { checkedVariableName, variableNameProblem } from "../../ssh/variable-name.ts";
import { outsideLines } from "../../system/printable.ts";

/** A command to run on a node. */
export interface NodeCommand {
  /** The program and its arguments, passed on exactly: no shell reads them. For a shell line, pass `["sh", "-c", line]`. */
  readonly args: readonly string[];
  /** Variables for the command, by name. They may be secrets: they never appear in an argument list, here or on the node. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path on the node; default: the home folder of the login user. */
  readonly cwd?: string;
  /** What the command reads from its stdin; default: nothing. */
  readonly input?: string | Uint8Array;
  /** Whether it runs as root, like all commands of `cluster-cloud run`; default: true. Otherwise it runs as the image's login user. */
  readonly asRoot?: boolean;
  /** Whether a status other than 0 throws; default: true. */
  readonly reject?: boolean;
  /** Milliseconds after which the command and everything that it started are ended (`deadline-passed`); default: no limit. */
  readonly timeoutMs?: number;
  /** When aborted, ends the command on the node and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
  /** Called with output as it arrives, in chunks that may be partial lines. */
  readonly onOutput?: (stream: "stdout" | "stderr", chunk: string) => void;
}

/** The result of a command. */
export interface NodeCommandResult {
  /** The exit status, or 128 + the signal number if a signal ended the command. */
  readonly status: number;
  /** The whole output, decoded as UTF-8, including the last newline. If it is longer than 4 Mi characters, only the end is kept. */
  readonly stdout: string;
  readonly stderr: string;
}

const withoutNull = (given: unknown): string | undefined =>
  anyText(given) ?? (String(given).includes("\0") ? "the value contains a null character" : undefined);

const shape: Shape<NodeCommand> = {
  args: required(listOf(withoutNull, { minimum: 1 })),
  env: optional(mappingOf(withoutNull, (name) => variableNameProblem(String(name)))),
  cwd: optional(textThat((path) => (posix.isAbsolute(path) ? undefined : `${quoted(path)} is not an absolute path`))),
  input: optional(textOrBytes),
  asRoot: optional(flag),
  reject: optional(flag),
  timeoutMs: optional(milliseconds),
  cancelSignal: optional(signalCheck),
  onOutput: optional(callback),
};

/** Throws `bad-usage` with every problem. */
export const readNodeCommand = (given: NodeCommand): NodeCommand => readArguments(given, shape);

/** Runs the command over the connection to the node with this reference. For its errors see ClusterNode.run. */
export async function runCommand(
  command: NodeCommand,
  { connection, reference }: { readonly connection: Connection; readonly reference: string },
  signal: AbortSignal,
): Promise<NodeCommandResult> {
  const { status, stdout, stderr } = await connection.run(remoteCommand(command), signal);
  if (status === 0 || command.reject === false) return { status, stdout, stderr };
  throw commandFailed(command, reference, { status, stdout, stderr });
}

function remoteCommand(command: NodeCommand): RemoteCommand {
  const { args, env = {}, cwd, input, asRoot = true, timeoutMs, onOutput } = command;
  const { argv, stdin } =
    Object.keys(env).length === 0 ? { argv: args, stdin: input } : withVariables(args, env, input);
  return {
    argv,
    sudo: asRoot,
    ...(stdin !== undefined && { stdin }),
    ...(cwd !== undefined && { cwd }),
    ...(timeoutMs !== undefined && { limitMs: timeoutMs }),
    ...(onOutput !== undefined && { onOutput }),
  };
}

/** Sends the values ahead of the command's own stdin. If the transfer is cut off, the last line is missing and the command doesn't run. */
function withVariables(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: NodeCommand["input"],
): { readonly argv: readonly string[]; readonly stdin: Uint8Array } {
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

function commandFailed({ args }: NodeCommand, reference: string, result: NodeCommandResult): ClusterError {
  const lines = outsideLines(result.stderr, shownLines).map((line) => `  ${line}`);
  const said = lines.length === 0 ? "." : `:\n${lines.join("\n")}`;
  return new ClusterError(
    "remote-command-failed",
    `${reference}: ${args[0]} exited with status ${result.status}${said}`,
    {
      hint: "Pass `reject: false` to get every exit status as a result.",
      facts: { node: reference, ...result },
    },
  );
}
