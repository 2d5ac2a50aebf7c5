import { randomBytes } from "node:crypto";
import type { RemoteCommand } from "../connection/connection.ts";
import { checkedVariableName, quote, shellText } from "../shell-text.ts";
import { printBegun, printMark } from "./node-marks.ts";
import awaitScript from "./await-script.sh" with { type: "text" };
import beginSession from "./begin-session.sh" with { type: "text" };
import deliverScript from "./deliver-script.sh" with { type: "text" };
import endGroupFile from "./end-group.sh" with { type: "text" };
import processTree from "./process-tree.sh" with { type: "text" };
import runAsUser from "./run-as-user.sh" with { type: "text" };
import runSealed from "./run-sealed.sh" with { type: "text" };
import sessionFolder from "./session-folder.sh" with { type: "text" };

const endGroup = shellText(processTree) + shellText(endGroupFile);

/** The values by which a session and its script find each other. */
export interface SessionTransport {
  /**
   * A random name in the command line of every process that carries the session on its node, and of
   * no other process.
   */
  readonly token: string;
  readonly asRoot: boolean;
}

export const createToken = (): string => `e2e-${randomBytes(16).toString("hex")}`;

/** Appends the last line, by which the node knows that it has received the whole script. */
export const sealed = (script: string, token: string): string => `${script}# ${token}`;

/** Returns the command that runs a sealed script of this length in bytes, which comes ahead of all other stdin. */
export const sealedCommand = (
  token: string,
  scriptBytes: number,
): readonly [string, ...string[]] => [
  "sh",
  "-c",
  shellText(runSealed, { MARKS: "" }),
  "sh",
  token,
  String(scriptBytes),
];

/**
 * For a session without a terminal: the script comes ahead of the user's own stdin, and exists only
 * in the shell's memory.
 */
export function pipedLine(transport: SessionTransport, scriptBytes: number): string {
  return sessionLine("", { ...transport, marks: "yes" }, [String(scriptBytes)]);
}

/** For a session with a terminal; see await-script.sh. */
export function terminalLine(transport: SessionTransport): string {
  return sessionLine(
    shellText(sessionFolder) + shellText(awaitScript),
    { ...transport, marks: "" },
    [],
  );
}

/** Sends the script to where `terminalLine` waits for it. The script travels by stdin. */
export function deliverCommand({ token }: SessionTransport, script: string): RemoteCommand {
  const text = shellText(sessionFolder) + shellText(deliverScript);
  return { argv: ["sh", "-c", text, "e2e-deliver-script", token], stdin: script };
}

/** Ends all processes of a session, and what they started. */
export function endCommand({ token, asRoot }: SessionTransport): RemoteCommand {
  const pattern = `${token.slice(0, -1)}[${token.slice(-1)}]`;
  return {
    argv: ["sh", "-c", endGroup, "e2e-end-session", pattern],
    sudo: asRoot,
    limitMs: 5_000,
  };
}

/** Returns a session without a terminal as a command that runs as root. No stdin follows the script. */
export function sessionCommand(
  script: SessionScript,
): Required<Pick<RemoteCommand, "argv" | "stdin" | "sudo">> {
  const token = createToken();
  const text = sealed(renderSessionScript(script), token);
  // `remoteLine` adds the marks.
  const begin = shellText(beginSession, {
    SUDO: "",
    MARKS: "",
    RUN_SEALED: shellText(runSealed, { MARKS: "" }),
  });
  return {
    argv: ["sh", "-c", begin, "sh", token, String(Buffer.byteLength(text))],
    stdin: text,
    sudo: true,
  };
}

/**
 * Returns the line for ssh. Nothing else of the session is visible in process lists. fish and csh, which read quoted
 * text in another way, fail at its beginning.
 */
function sessionLine(
  before: string,
  { token, asRoot, marks }: SessionTransport & { readonly marks: "yes" | "" },
  more: readonly string[],
): string {
  const run = shellText(runSealed, { MARKS: marks });
  const values = { SUDO: asRoot ? "sudo -n -H --" : "", MARKS: marks, RUN_SEALED: run };
  return `s=$$ && exec ${quote(["sh", "-c", before + shellText(beginSession, values), "sh", token, ...more])}`;
}

/** The parts of a command that make up its shell line. */
export type LineParts = Pick<
  RemoteCommand,
  "argv" | "cwd" | "environment" | "sudo" | "namesHolders"
>;

/**
 * Returns the line for the login shell, which prints marks around the command; see node-marks.ts.
 * sshd gives every command a session of its own, so the login shell's process id is also the id of
 * the process group. The command isn't the login shell itself, so that a signal that ends it is a
 * status, and only the command gets stderr, because a shell reports such a signal with its own
 * source text. Non-POSIX shells run nothing of it: fish fails at `$$`, csh at the redirections.
 */
export function remoteLine(command: LineParts, user: string, token: string): string {
  const inner = body(command, user, `${printBegun(token)}; `);
  const outputs =
    command.namesHolders === true ? " $(readlink /proc/$$/fd/1) $(readlink /proc/$$/fd/3)" : "";
  return `${printMark(token, "group $$")} >&2; exec 3>&2 2>/dev/null; ( ${inner} ) 2>&3 3>&-; s=$?; ${printMark(token, `end $s${outputs}`)} >&3; exit $s`;
}

export function shownLine(command: LineParts, user: string): string {
  return body({ ...command, argv: command.argv.map(shownWord) }, user);
}

function shownWord(word: string): string {
  const text = word.trim();
  const end = text.indexOf("\n");
  return end === -1 ? word : `${text.slice(0, end)} …`;
}

/** `begun` is run as the right user, just before the command. */
function body(command: LineParts, user: string, begun = ""): string {
  const asRoot = command.sudo === true && user !== "root";
  const settings = [
    ...(command.cwd === undefined ? [] : [`cd -- ${quote([command.cwd])}`]),
    ...Object.entries(command.environment ?? {}).map(
      ([name, value]) => `export ${checkedName(name)}=${quote([value])}`,
    ),
  ];
  const inner = begun + [...settings, `exec ${quote(command.argv)}`].join(" && ");
  if (!asRoot) return inner;
  const isPlain = settings.length === 0 && begun === "";
  return `exec sudo -n -H -- ${isPlain ? quote(command.argv) : `sh -c ${quote([inner])}`}`;
}

/** Ends a process group: sends TERM, and KILL two seconds later. */
export function endGroupCommand(processId: number): readonly string[] {
  return ["sh", "-c", endGroup, "sh", String(processId)];
}

/** Returns `endGroupCommand` as a line for the login shell. */
export const endGroupLine = (processId: number, asRoot: boolean): string =>
  `${asRoot ? "exec sudo -n --" : "exec"} ${quote(endGroupCommand(processId))}`;

function checkedName(name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name))
    throw new TypeError(`Not the name of an environment variable: ${name}`);
  return name;
}

/** The environment of a user's command. None of its values ever appears in an argument list, here or on the node. */
export interface SessionScript {
  /** The first settings that fit are used. */
  readonly settings: readonly SessionSettings[];
  /** A single word is a shell line; several words are run exactly as they are. */
  readonly words: readonly string[];
  /** The node's user who runs them; undefined: the one who runs the script. */
  readonly user?: string | undefined;
  /** Says what to do if a working directory is missing on the node; printed after that message. */
  readonly missingFolderHint: string;
}

export interface SessionSettings {
  /**
   * These settings fit only if this absolute path exists on the node. The check runs there, which saves a round trip
   * before the session. Undefined: they always fit.
   */
  readonly whenExists: string | undefined;
  /** A shell file on the node to source first, if it exists. */
  readonly environmentFile: string | undefined;
  /** Set after that file is read, so they override it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Undefined: the home directory. A directory that doesn't exist ends the session with 255. */
  readonly workingDirectory: string | undefined;
}

/**
 * Returns the shell text of a session. The shell stays the parent of the command (no `exec`). Otherwise a command that
 * dies by a signal would end the whole session with it, which ssh reports as 255 instead of 128 + n.
 */
export function renderSessionScript(script: SessionScript): string {
  const { settings, missingFolderHint } = script;
  const render = (one: SessionSettings): string => renderSettings(one, missingFolderHint);
  return [
    ...settings.map(
      (one, index) => `${index === 0 ? "if" : "elif"} ${condition(one)}; then\n${render(one)}`,
    ),
    ...(settings.length === 0 ? [] : ["fi"]),
    // The whole session gets Ctrl-C on a terminal: without a trap, this shell would die with the
    // command. A subshell has none.
    "trap : INT",
    // So the words `exit`, `exec` and `set` don't reach this shell either.
    `( ${commandOf(script)} )`,
    "exit $?",
    "",
  ].join("\n");
}

function commandOf({ settings, words, user }: SessionScript): string {
  if (user === undefined) return words.length === 1 ? `eval ${quote(words)}` : quote(words);
  const isHome = settings.every(({ workingDirectory }) => workingDirectory === undefined);
  const folder = isHome ? "home" : "";
  return quote(["sh", "-c", shellText(runAsUser), "e2e-run-as-user", user, folder, ...words]);
}

const condition = ({ whenExists }: SessionSettings): string =>
  whenExists === undefined ? ":" : `[ -e ${quote([whenExists])} ]`;

function renderSettings(
  { environmentFile, variables, workingDirectory }: SessionSettings,
  missingFolderHint: string,
): string {
  return [
    ...(environmentFile === undefined ? [] : [readFile(quote([environmentFile]))]),
    ...Object.entries(variables).map(
      ([name, value]) => `export ${checkedVariableName(name)}=${quote([value])}`,
    ),
    workingDirectory === undefined ? "cd" : enter(workingDirectory, missingFolderHint),
  ].join("\n");
}

const readFile = (path: string): string => `if [ -r ${path} ]; then . ${path}; fi`;

function enter(folder: string, hint: string): string {
  const complaint = quote([`The folder ${folder} does not exist on this node. ${hint}`]);
  return `cd -- ${quote([folder])} 2>/dev/null || { echo ${complaint} >&2; exit 255; }`;
}
