import type { RemoteCommand } from "./connection.ts";
import { quote } from "./quote.ts";

/** What is needed of a command to write its shell line. */
export type LineParts = Pick<RemoteCommand, "argv" | "cwd" | "environment" | "sudo">;

/**
 * The line that the login shell is given. It first tells its process id, which is also that of its process group (sshd makes every command a
 * session of its own), in a marked line on stderr, so that the whole group can be ended later; `processMark` takes that line out again.
 */
export function remoteLine(command: LineParts, user: string): string {
  return `echo "${mark} $$" >&2; ${body(command, user)}`;
}

/** The command as people should see it: without the mark, and with scripts cut down to their beginning. */
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

/** Ends a process group: asks, and insists two seconds later. */
export function endGroupLine(processId: number, asRoot: boolean): string {
  const script = "kill -TERM -$1; (sleep 2; kill -KILL -$1) </dev/null >/dev/null 2>&1 &";
  return `${asRoot ? "exec sudo -n --" : "exec"} ${quote(["sh", "-c", script, "sh", String(processId)])}`;
}

const mark = "e2e-process-group";
const markLine = new RegExp(`(^|\\n)${mark} (\\d+)\\n`);

/** Finds the mark in the beginning of stderr, where a login shell's own start-up files may have written before it. */
export function processMark(text: string): { readonly processId: number; readonly rest: string } | undefined {
  const match = markLine.exec(text);
  if (match === null) return undefined;
  const rest = text.slice(0, match.index) + (match[1] ?? "") + text.slice(match.index + match[0].length);
  return { processId: Number(match[2]), rest };
}

function checkedName(name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new TypeError(`No name of an environment variable: ${name}`);
  return name;
}
