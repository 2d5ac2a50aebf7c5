import { ClusterError } from "../../errors.ts";
import { minimalEnvironment } from "../../system/processes/child-environment.ts";
import type { Environment } from "../../system/environment.ts";
import type { Connection } from "../connection/connection.ts";
import { eitherSignal, rejection } from "../either-signal.ts";
import { feedStdin } from "./feed-stdin.ts";
import { findSsh } from "./find-ssh.ts";
import { createLoginMark } from "./login-mark.ts";
import type { LoginMark } from "./login-mark.ts";
import { createToken, deliverCommand, endCommand, pipedLine, sealed, terminalLine } from "./session-line.ts";
import type { SessionCarriage } from "./session-line.ts";
import { createSshMessages } from "../ssh-messages.ts";
import type { SshMessages } from "../ssh-messages.ts";
import { renderSessionScript } from "./session-script.ts";
import type { SessionScript } from "./session-script.ts";

export interface SessionRequest {
  /** Has a `Host` block named `host`; see renderSshConfig. */
  readonly sshConfigFile: string;
  /** The node's reference. */
  readonly host: string;
  readonly loginUser: string;
  /** Whether the command runs as root: with `sudo -n` if the login user isn't root. */
  readonly sudo: boolean;
  readonly script: SessionScript;
  /** Whether the command gets a terminal; this program's own stdin must then be one. */
  readonly terminal: boolean;
  /** The command's stdin, stdout and stderr: this program's own, or open files. */
  readonly stdio: SessionStdio;
  /** This program's environment. */
  readonly environment: Environment;
  /**
   * Opens a second connection to the node. Used at once for a session with a terminal, otherwise only after a session that was interrupted or ended
   * with 255.
   */
  connect(signal: AbortSignal): Promise<Connection>;
}

type SessionStdio = readonly [stdin: "inherit" | number, stdout: "inherit" | number, stderr: "inherit" | number];

/**
 * Runs a user's command through this machine's `ssh`. Resolves with the remote command's own status, with 128 + n if it died by a signal, or with 255
 * after a line from ssh on stderr. Rejects with `connection-failed`, after ssh's own messages, if ssh did not log in or the node is gone; with
 * `host-key-changed` alone, without ssh's advice; if the script can't be delivered; and on abort with the signal's reason, after it told the remote
 * processes to end.
 */
export async function runSession(request: SessionRequest, signal: AbortSignal): Promise<number> {
  const carriage = { token: createToken(), asRoot: request.sudo && request.loginUser !== "root" };
  await using mark = createLoginMark(`${request.sshConfigFile}.${carriage.token}`);
  await using messages = createSshMessages(`${request.sshConfigFile}.${carriage.token}.log`, request.stdio[2]);
  const session = start(request, carriage, { mark, messages });
  using end = eitherSignal([signal, session.ended]);
  const carried = carry(session, request, end.signal);
  try {
    // Once the script is on its way only a failure to deliver it matters; ssh reports the outcome.
    const status = await Promise.race([session.status, carried.then(() => session.status), rejection(signal)]);
    if (status !== sshFailed) {
      messages.release();
      return status;
    }
    // ssh also ends this way after an interrupt from the keyboard, perhaps before this program receives it.
    await Promise.race([rejection(signal), Bun.sleep(interruptDelayMs)]);
    if (session.child.signalCode !== null) throw sshKilled(session.child.signalCode);
  } catch (error) {
    await endSession(session, request);
    if (!isHostKeyChange(error)) messages.release();
    throw error;
  }
  const reason = await whyUnreachable(request);
  if (isHostKeyChange(reason)) throw reason;
  messages.release();
  if (!mark.isSet() && reason instanceof ClusterError && reason.id === "key-missing") throw reason;
  if (!mark.isSet()) throw loginFailed(request.host);
  if (reason !== undefined) throw nodeGone(request.host);
  return sshFailed;
}

/** ssh's exit status for its own failures. */
const sshFailed = 255;
const interruptDelayMs = 50;
const endingPatienceMs = 3_000;
const answerPatienceMs = 5_000;

interface Session {
  readonly carriage: SessionCarriage;
  /** How the script is delivered; see session-line.ts. */
  readonly script: string;
  readonly child: Bun.Subprocess;
  readonly status: Promise<number>;
  /** Aborts when ssh has ended. */
  readonly ended: AbortSignal;
  /** The connection that delivered the script to a session with a terminal. */
  readonly way: { connection?: Connection };
}

function start(
  request: SessionRequest,
  carriage: SessionCarriage,
  { mark, messages }: { readonly mark: LoginMark; readonly messages: SshMessages },
): Session {
  const ssh = findSsh(request.environment);
  const script = sealed(renderSessionScript(request.script), carriage.token);
  const [mode, line] = request.terminal
    ? ["-t", terminalLine(carriage)]
    : ["-T", pipedLine(carriage, Buffer.byteLength(script))];
  const [stdin, stdout, stderr] = request.stdio;
  const options = ["-F", request.sshConfigFile, ...mark.options, ...messages.options, mode];
  const child = Bun.spawn([ssh, ...options, request.host, line], {
    stdio: [request.terminal ? stdin : "pipe", stdout, stderr],
    env: { ...minimalEnvironment(request.environment), ...mark.environment },
  });
  const ended = new AbortController();
  const status = child.exited.then((code) => {
    ended.abort(new ClusterError("connection-failed", "ssh has ended."));
    return child.signalCode === null ? code : sshFailed;
  });
  return { carriage, script, child, status, ended: ended.signal, way: {} };
}

/** Resolves when the script, and all of stdin after it, has been sent, or when ssh has ended and it no longer matters. */
async function carry(session: Session, request: SessionRequest, signal: AbortSignal): Promise<void> {
  try {
    await (request.terminal ? deliver(session, request, signal) : feed(session, request, signal));
  } catch (error) {
    if (!session.ended.aborted) throw error;
  }
}

async function feed(
  { child, script }: Session,
  { stdio, environment }: SessionRequest,
  signal: AbortSignal,
): Promise<void> {
  const sink = child.stdin;
  if (typeof sink !== "object") throw new TypeError("ssh was started without a pipe for its stdin");
  await feedStdin({ head: script, source: stdio[0], sink, environment: minimalEnvironment(environment) }, signal);
}

async function deliver(
  { carriage, script, way }: Session,
  request: SessionRequest,
  signal: AbortSignal,
): Promise<void> {
  way.connection = await request.connect(signal);
  const result = await way.connection.run(deliverCommand(carriage, script), signal);
  if (result.status === 0) return;
  const reason = result.stderr.trim().split("\n").at(-1) || `status ${result.status}`;
  throw new ClusterError("transfer-failed", `The command could not be sent to ${request.host}: ${reason}.`, {
    hint: "Try again. If it comes again, look for room in /dev/shm or /tmp of that node.",
    facts: { node: request.host },
  });
}

/** Ends the remote processes first, over the other connection: without a terminal, ending ssh alone would leave them running. */
async function endSession({ carriage, child, status, way }: Session, request: SessionRequest): Promise<void> {
  const patience = AbortSignal.timeout(endingPatienceMs);
  try {
    const connection = request.terminal ? way.connection : await request.connect(patience);
    await connection?.run(endCommand(carriage), patience);
  } catch {
    // The node is out of reach, and so are its processes.
  }
  child.kill();
  const insist = setTimeout(() => child.kill("SIGKILL"), endingPatienceMs);
  await status;
  clearTimeout(insist);
}

/**
 * Called after a 255, which may be the command's own or ssh's: below LogLevel INFO, ssh prints nothing about a node that falls silent. Undefined if
 * the node answers.
 */
async function whyUnreachable(request: SessionRequest): Promise<unknown> {
  const patience = AbortSignal.timeout(answerPatienceMs);
  try {
    const connection = await request.connect(patience);
    await connection.run({ argv: ["true"] }, patience);
    return undefined;
  } catch (error) {
    return error;
  }
}

const isHostKeyChange = (error: unknown): boolean => error instanceof ClusterError && error.id === "host-key-changed";

const sshKilled = (signalName: NodeJS.Signals | number): ClusterError =>
  new ClusterError("connection-failed", `ssh was ended from outside, by ${signalName}.`, {
    hint: "Something on this machine ended it, such as a lack of memory. What ran on the node was told to end.",
  });

const loginFailed = (host: string): ClusterError =>
  new ClusterError("connection-failed", `ssh could not log in to ${host}; nothing was run there.`, {
    facts: { node: host },
  });

const nodeGone = (host: string): ClusterError =>
  new ClusterError("connection-failed", `${host} no longer answers; whether the command ended there is not known.`, {
    facts: { node: host },
  });
