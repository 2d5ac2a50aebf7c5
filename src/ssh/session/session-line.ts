import { randomBytes } from "node:crypto";
import type { RemoteCommand } from "../connection/connection.ts";
import { quote } from "../quote.ts";

/** The values by which a session and its script find each other. */
export interface SessionTransport {
  /** A random name in the command line of every process that carries the session on its node, and of no other process. */
  readonly token: string;
  readonly asRoot: boolean;
}

export const createToken = (): string => `e2e-${randomBytes(16).toString("hex")}`;

/** Appends the last line, by which the node knows that it has received the whole script. */
export const sealed = (script: string, token: string): string => `${script}# ${token}`;

/** Returns a shell line that prints exactly this many bytes of its stdin and leaves the rest; in some implementations `head -c` reads more. */
export const takeBytes = (count: number): string => `dd bs=${count} count=1 iflag=fullblock 2>/dev/null`;

/**
 * Returns a shell line that runs the sealed script that `read` prints, where `$1` is the token. It doesn't run a script that was cut off on its way.
 */
export const runSealed = (read: string): string =>
  `s=$(${read}); case $s in *"# $1") eval "$s" ;; esac; echo "The command did not reach the node completely" >&2; exit 255`;

/** For a session without a terminal: the script comes ahead of the user's own stdin, and exists only in the shell's memory. */
export function pipedLine(transport: SessionTransport, scriptBytes: number): string {
  return sessionLine(transport, [], takeBytes(scriptBytes));
}

/**
 * For a session with a terminal: stdin belongs to the user, so the script comes over another connection, opened at the same time, into a folder that
 * is created here and that nobody else can write to. The folder's name is visible on the node, so another user could create it first; in that case
 * the session ends.
 */
export function terminalLine(transport: SessionTransport): string {
  const wait = [
    `u=$(umask); umask 077; ${chooseFolder}`,
    `mkdir -- "$d" || exit 255`,
    `trap 'rm -rf -- "$d"; echo "The command did not reach the node" >&2' EXIT`,
    `trap 'exit 255' HUP INT TERM`,
    waitUntil(`[ -e "$d/script" ]`),
    `trap - EXIT HUP INT TERM; umask "$u"`,
  ];
  return sessionLine(transport, wait, `cat "$2/script" && rm -rf -- "$2"`);
}

/**
 * Sends the script to where `terminalLine` waits for it. The script travels by stdin, and is written only into a folder that belongs to this user.
 */
export function deliverCommand({ token }: SessionTransport, script: string): RemoteCommand {
  const deliver = [
    `# delivers a session's script`,
    `umask 077; set -eC; ${chooseFolder}`,
    waitUntil(`[ -d "$d" ]`),
    // The folder's real name must match: a link in its place, made by another user, could lead to another folder of this user.
    `cd -P -- "$d" && [ -O . ] && [ "$(basename -- "$PWD")" = "$1" ] && cat >part && mv -- part script`,
  ];
  return { argv: ["sh", "-c", deliver.join("\n"), "sh", token], stdin: script };
}

/**
 * Ends all processes of a session and what they started in their process groups: sends TERM, and KILL two seconds later. It finds them by the token
 * as a whole argument; the brackets in the pattern keep the search from finding itself. A process chooses its own name, which may contain spaces and
 * brackets, so the fields are counted from behind the name.
 */
export function endCommand({ token, asRoot }: SessionTransport): RemoteCommand {
  const pattern = `${token.slice(0, -1)}[${token.slice(-1)}]`;
  const script = `# ends a session
groups=$(for p in $(grep -lsxz -- "$1" /proc/[0-9]*/cmdline); do sed 's/.*) //' "\${p%/cmdline}/stat" | cut -d ' ' -f 3; done 2>/dev/null | grep -x '[1-9][0-9][0-9]*' | sort -u)
for g in $groups; do kill -TERM -"$g"; done
(sleep 2; for g in $groups; do kill -KILL -"$g"; done) >/dev/null 2>&1 </dev/null &`;
  return { argv: ["sh", "-c", script, "sh", pattern], sudo: asRoot, limitMs: 5_000 };
}

/** `read` prints the script in a shell in which `$1` is the token and `$2` the folder. Its words are all that is visible of the session. */
function sessionLine({ token, asRoot }: SessionTransport, before: readonly string[], read: string): string {
  const script = [
    ...before,
    "b=sh; ! command -v bash >/dev/null || b=bash",
    `exec ${asRoot ? "sudo -n -H -- " : ""}"$b" -c ${quote([runSealed(read)])} cluster-e2e "$1" "$d"`,
  ];
  return `exec ${quote(["sh", "-c", script.join("\n"), "sh", token])}`;
}

/** Prefers memory to disk, if there is a memory folder that everyone may write to. */
const chooseFolder = `d=/dev/shm; [ -w "$d" ] || d=/tmp; d=$d/$1`;

/** Waits two seconds in small steps, then up to two minutes in larger ones. */
const waitUntil = (test: string): string =>
  `i=0; until ${test}; do i=$((i+1)); [ "$i" -lt 700 ] || exit 255; if [ "$i" -lt 100 ]; then sleep 0.02; else sleep 0.2; fi; done`;
