import { randomBytes } from "node:crypto";
import type { RemoteCommand } from "../connection/connection.ts";
import { quote } from "../quote.ts";
import { shellText } from "../shell-text.ts";
import awaitScript from "./await-script.sh" with { type: "text" };
import beginSession from "./begin-session.sh" with { type: "text" };
import deliverScript from "./deliver-script.sh" with { type: "text" };
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
