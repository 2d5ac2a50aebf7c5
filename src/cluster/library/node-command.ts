import { ClusterError } from "../../errors.ts";
import type { Connection, RemoteCommand } from "../../ssh/connection/connection.ts";
import { quote } from "../../ssh/quote.ts";
import { createToken, runSealed, sealed, takeBytes } from "../../ssh/session/session-line.ts";
import { checkedVariableName } from "../../ssh/variable-name.ts";

/** A command for a node. */
export interface NodeCommand {
  /** The program and its arguments, passed on exactly: no shell reads them. A shell line is `["sh", "-c", line]`. */
  readonly args: readonly string[];
  /** Variables for the command, by name. They may be secrets: they stand in no argument list, here or on the node. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path on the node; default: the home folder of the user that logs in. */
  readonly cwd?: string;
  /** What the command reads from its stdin; default: nothing. */
  readonly input?: string | Uint8Array;
  /** Whether it runs as root, as all commands of `cluster-cloud run` do; default: true. Otherwise as the user that the image lets in. */
  readonly asRoot?: boolean;
  /** Whether a status other than 0 throws; default: true. */
  readonly reject?: boolean;
  /** Milliseconds after which the command, with all that it started, is ended (`deadline-passed`); default: none. */
  readonly timeoutMs?: number;
  /** Aborted, the command is ended on the node, and the signal's reason thrown. */
  readonly cancelSignal?: AbortSignal;
  /** Called with the output as it comes, in pieces that needn't be lines. */
  readonly onOutput?: (stream: "stdout" | "stderr", chunk: string) => void;
}

/** What came of a command. */
export interface NodeCommandResult {
  /** The exit status; 128 + the signal's number where a signal ended the command. */
  readonly status: number;
  /** All that it wrote, read as UTF-8, its last newline included; of more than 4 Mi characters the last ones. */
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it over the connection of the node with this reference. Fails as ClusterNode.run says. */
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

/** The values travel ahead of the command's own stdin. One that was cut off on its way lacks its last line, and isn't run. */
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
    argv: ["sh", "-c", runSealed(takeBytes(script.length)), "sh", token],
    stdin: Buffer.concat([script, Buffer.from(input ?? "")]),
  };
}

const shownLines = 20;

function commandFailed({ args }: NodeCommand, reference: string, result: NodeCommandResult): ClusterError {
  const lines = result.stderr.trimEnd().split("\n").slice(-shownLines);
  const said = result.stderr.trim() === "" ? "." : `:\n${lines.join("\n")}`;
  return new ClusterError(
    "remote-command-failed",
    `${reference}: ${args[0]} ended with status ${result.status}${said}`,
    {
      hint: "With `reject: false` every status is a result.",
      facts: { node: reference, ...result },
    },
  );
}
