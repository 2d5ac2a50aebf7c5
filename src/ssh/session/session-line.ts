import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { RemoteCommand } from "../connection/connection.ts";
import { quote, shellText } from "../shell-text.ts";
import awaitScript from "./await-script.sh" with { type: "text" };
import beginSession from "./begin-session.sh" with { type: "text" };
import deliverScript from "./deliver-script.sh" with { type: "text" };
import endGroup from "./end-group.sh" with { type: "text" };
import endSessionFile from "./end-session.sh" with { type: "text" };
import runSealed from "./run-sealed.sh" with { type: "text" };
import sessionFolder from "./session-folder.sh" with { type: "text" };

/** The values by which a session and its script find each other. */
export interface SessionTransport {
  /** A random name in the command line of every process that carries the session on its node, and of no other process. */
  readonly token: string;
  readonly asRoot: boolean;
}

export const createToken = (): string => `e2e-${randomBytes(16).toString("hex")}`;

/** Appends the last line, by which the node knows that it has received the whole script. */
export const sealed = (script: string, token: string): string => `${script}# ${token}`;

/** Returns the command that runs a sealed script of this length in bytes, which comes ahead of all other stdin. */
export const sealedCommand = (token: string, scriptBytes: number): readonly [string, ...string[]] => [
  "sh",
  "-c",
  shellText(runSealed),
  "sh",
  token,
  String(scriptBytes),
];

/** For a session without a terminal: the script comes ahead of the user's own stdin, and exists only in the shell's memory. */
export function pipedLine(transport: SessionTransport, scriptBytes: number): string {
  return sessionLine("", transport, [String(scriptBytes)]);
}

/** For a session with a terminal; see await-script.sh. */
export function terminalLine(transport: SessionTransport): string {
  return sessionLine(shellText(sessionFolder) + shellText(awaitScript), transport, []);
}

/** Sends the script to where `terminalLine` waits for it. The script travels by stdin. */
export function deliverCommand({ token }: SessionTransport, script: string): RemoteCommand {
  const text = shellText(sessionFolder) + shellText(deliverScript);
  return { argv: ["sh", "-c", text, "e2e-deliver-script", token], stdin: script };
}

/** Ends all processes of a session, and what they started. */
export function endCommand({ token, asRoot }: SessionTransport): RemoteCommand {
  const pattern = `${token.slice(0, -1)}[${token.slice(-1)}]`;
  const argv = ["sh", "-c", shellText(endSessionFile), "e2e-end-session", pattern] as const;
  return { argv, sudo: asRoot, limitMs: 5_000 };
}

/** Its words are all that is visible of the session. */
function sessionLine(before: string, { token, asRoot }: SessionTransport, more: readonly string[]): string {
  const values = { SUDO: asRoot ? "sudo -n -H --" : "", RUN_SEALED: shellText(runSealed) };
  return `exec ${quote(["sh", "-c", before + shellText(beginSession, values), "sh", token, ...more])}`;
}

/** The parts of a command that make up its shell line. */
export type LineParts = Pick<RemoteCommand, "argv" | "cwd" | "environment" | "sudo">;

/**
 * Returns the line for the login shell. It first prints the command's token on both streams. The token separates the command's own output from
 * whatever the shell's start-up files print, and proves that the command has begun. On stderr the process id follows, which is also the id of the
 * process group (sshd gives every command a session of its own), so that the whole group can be ended later. Non-POSIX shells fail at the first line:
 * fish at `$$`, csh at the redirections, which it takes for files.
 */
export function remoteLine(command: LineParts, user: string, token: string): string {
  return `echo "${token} $$" >&2; echo ${token} 2>&1; ${body(command, user)}`;
}

/** Returns the command as people should see it: without the mark, and with scripts shortened to their beginning. */
export function shownLine(command: LineParts, user: string): string {
  return body({ ...command, argv: command.argv.map(shownWord) }, user);
}

function shownWord(word: string): string {
  const text = word.trim();
  const end = text.indexOf("\n");
  return end === -1 ? word : `${text.slice(0, end)} …`;
}

function body(command: LineParts, user: string): string {
  const asRoot = command.sudo === true && user !== "root";
  const settings = [
    ...(command.cwd === undefined ? [] : [`cd -- ${quote([command.cwd])}`]),
    ...Object.entries(command.environment ?? {}).map(
      ([name, value]) => `export ${checkedName(name)}=${quote([value])}`,
    ),
  ];
  const inner = settings.length === 0 ? quote(command.argv) : [...settings, `exec ${quote(command.argv)}`].join(" && ");
  if (!asRoot) return settings.length === 0 ? `exec ${inner}` : inner;
  return settings.length === 0 ? `exec sudo -n -H -- ${inner}` : `exec sudo -n -H -- sh -c ${quote([inner])}`;
}

/** Ends a process group: sends TERM, and KILL two seconds later. */
export function endGroupCommand(processId: number): readonly string[] {
  return ["sh", "-c", shellText(endGroup), "sh", String(processId)];
}

/** The same as a line for the login shell. */
export const endGroupLine = (processId: number, asRoot: boolean): string =>
  `${asRoot ? "exec sudo -n --" : "exec"} ${quote(endGroupCommand(processId))}`;

/** Returns what follows the command's token in a stream; undefined until the token arrives. */
export function afterToken(text: string, token: string): string | undefined {
  const start = text.indexOf(`${token}\n`);
  return start === -1 ? undefined : text.slice(start + token.length + 1);
}

/** Finds the process group in stderr. Start-up files may have printed there first, perhaps without a line break at the end. */
export function processMark(
  text: string,
  token: string,
): { readonly processId: number; readonly rest: string } | undefined {
  const start = text.indexOf(`${token} `);
  const [line, processId] = start === -1 ? [] : (/^\S+ (\d+)\n/.exec(text.slice(start)) ?? []);
  return line === undefined ? undefined : { processId: Number(processId), rest: text.slice(start + line.length) };
}

function checkedName(name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new TypeError(`Not the name of an environment variable: ${name}`);
  return name;
}

/** Tells whether an `ssh` that has ended had logged in. Its exit status can't: 255 may be the remote command's own. */
export interface LoginMark extends AsyncDisposable {
  /** Arguments for ssh's command line. */
  readonly options: readonly string[];
  /** Variables that ssh must find in its environment: it passes LocalCommand to the user's shell, which may be any program. */
  readonly environment: Readonly<Record<string, string>>;
  /** Stays the same after disposal. */
  isSet(): boolean;
}

/**
 * ssh itself creates an empty file as soon as it has logged in, before the remote command begins. `path` must not exist and must be in a folder that
 * belongs to this user; disposing of the mark removes the file. https://man.openbsd.org/ssh_config#LocalCommand
 */
export function createLoginMark(path: string): LoginMark {
  const command = `: >${quote([path])}`.replaceAll("%", "%%");
  const state = { wasSet: false };
  const isSet = (): boolean => state.wasSet || existsSync(path);
  return {
    options: ["-o", "PermitLocalCommand=yes", "-o", `LocalCommand=${command}`],
    environment: { SHELL: "/bin/sh" },
    isSet,
    [Symbol.asyncDispose]: async () => {
      state.wasSet = isSet();
      await rm(path, { force: true });
    },
  };
}
