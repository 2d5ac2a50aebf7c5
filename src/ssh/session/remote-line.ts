import type { RemoteCommand } from "../connection/connection.ts";
import { quote } from "../quote.ts";
import { shellText } from "../shell-text.ts";
import endGroup from "./end-group.sh" with { type: "text" };

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
