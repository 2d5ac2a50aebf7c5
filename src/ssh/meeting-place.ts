import { randomBytes } from "node:crypto";
import type { RemoteCommand } from "./connection.ts";
import { quote } from "./quote.ts";

/**
 * A script that goes to a node over one connection and is run by another that is opened at the same time: both logins together take about as long
 * as one. Both sides know a random name beforehand. The running side makes a private folder of that name, and gives up where it is there
 * already; the delivering side waits for the folder, and writes only into one of its own user's. As the name can be seen on the node, another
 * user could make that folder first: that ends the session, and gives away or runs nothing.
 */
export interface MeetingPlace {
  /** Stands in the command line of every process of the session, and in no other's. */
  readonly token: string;
}

export const createMeetingPlace = (): MeetingPlace => ({ token: `e2e-${randomBytes(16).toString("hex")}` });

/** Memory rather than disk, where there is one that everybody may write to. */
const chooseFolder = `d=/dev/shm; [ -w "$d" ] || d=/tmp; d=$d/$1`;
/** Calls of `sleep`: two seconds in small steps, then in larger ones up to two minutes. */
const waitFor = (test: string): string =>
  `i=0; until ${test}; do i=$((i+1)); [ "$i" -lt 600 ] || exit 255; if [ "$i" -lt 100 ]; then sleep 0.02; else sleep 0.2; fi; done`;

/** For the command line of the session that runs the script: waits for it, then runs it under bash where there is one. */
export function runningLine({ token }: MeetingPlace, asRoot: boolean): string {
  const script = [
    `u=$(umask); umask 077; ${chooseFolder}`,
    `mkdir -- "$d" || exit 255`,
    `trap 'rm -rf -- "$d"; echo "The command did not reach the node" >&2' EXIT`,
    `trap 'exit 255' HUP INT TERM`,
    waitFor(`[ -e "$d/script" ]`),
    `trap - EXIT HUP INT TERM; umask "$u"`,
    "s=sh; ! command -v bash >/dev/null || s=bash",
    `${asRoot ? "exec sudo -n -H --" : "exec"} "$s" "$d/script"`,
  ].join("\n");
  return `exec ${quote(["sh", "-c", script, "sh", token])}`;
}

/** Delivers the script. It may be secret, so it travels by stdin. */
export function deliveringCommand({ token }: MeetingPlace, script: string): RemoteCommand {
  const deliver = [
    `umask 077; set -eC; ${chooseFolder}`,
    waitFor(`[ -d "$d" ]`),
    `cd -- "$d" && [ -O . ] && cat >part && mv -- part script`,
  ].join("\n");
  return { argv: ["sh", "-c", deliver, "sh", token], stdin: script };
}

/**
 * Ends all processes of the session, with what they have started in their process groups: asks, and insists two seconds later. The brackets keep
 * the search from finding itself.
 */
export function endingCommand({ token }: MeetingPlace, asRoot: boolean): RemoteCommand {
  const pattern = `${token.slice(0, -1)}[${token.slice(-1)}]`;
  const script = `
groups=$(for p in $(grep -ls -- "$1" /proc/[0-9]*/cmdline); do cut -d ' ' -f 5 "\${p%/cmdline}/stat"; done 2>/dev/null | sort -u)
for g in $groups; do kill -TERM -"$g"; done
(sleep 2; for g in $groups; do kill -KILL -"$g"; done) >/dev/null 2>&1 </dev/null &`;
  return { argv: ["sh", "-c", script, "sh", pattern], sudo: asRoot, limitMs: 5_000 };
}
