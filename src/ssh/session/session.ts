import { ClusterError } from "../../errors.ts";
import { minimalEnvironment } from "../../system/processes/child-environment.ts";
import type { Environment } from "../../system/runtime.ts";
import type { Connection } from "../connection/connection.ts";
import { orAborted } from "../../system/or-aborted.ts";
import { eitherSignal } from "../either-signal.ts";
import { feedStdin } from "./feed-stdin.ts";
import { createLoginMark, type LoginMark } from "./login-mark.ts";
import type { MasterConnection } from "./master-connection.ts";
import {
  createToken,
  deliverCommand,
  endCommand,
  pipedLine,
  sealed,
  type SessionTransport,
  terminalLine,
} from "./session-line.ts";
import { createSshMessages, type SshMessages } from "../ssh-messages.ts";
import { renderSessionScript, type SessionScript } from "./session-script.ts";
import { outsideReason } from "../../system/printable.ts";

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
  /** For a session that begins before it is certain that the node is the right one; undefined: it is certain. */
  readonly attempt: SessionAttempt | undefined;
  /** Used if it is open, and otherwise opened after a session that logged in; undefined: every session logs in. */
  readonly master: MasterConnection | undefined;
  /**
   * Opens a second connection to the node. Used at once for a session with a terminal, otherwise only after a session
   * that was interrupted or ended with 255.
   */
  connect(signal: AbortSignal): Promise<Connection>;
}

export interface SessionAttempt {
  /**
   * Aborts when the node turns out to be the wrong one. Ends the session with the signal's reason, unless the command
   * may have begun.
   */
  readonly refuted: AbortSignal;
  /** Called when the command has begun, or may have: the session then reports its own outcome. */
  onBegun(): void;
  /** Awaited before a failed login is reported. Rejects if the node was the wrong one. */
  confirm(): Promise<void>;
}

type SessionStdio = readonly [stdin: "inherit" | number, stdout: "inherit" | number, stderr: "inherit" | number];

/**
 * Runs a user's command through this machine's `ssh`. Resolves with the remote command's own status, with 128 + n if it
 * died by a signal, or with 255 after a line from ssh on stderr. Rejects with `connection-failed`, after ssh's own
 * messages, if ssh did not log in or the node is gone; with `host-key-changed` or `key-missing` alone, without ssh's
 * messages; if the script can't be delivered; and on abort with the signal's reason, after it told the remote processes
 * to end.
 */
export async function runSession(request: SessionRequest, signal: AbortSignal): Promise<number> {
  request.attempt?.refuted.throwIfAborted();
  const transport = { token: createToken(), asRoot: request.sudo && request.loginUser !== "root" };
  await using mark = createLoginMark(`${request.sshConfigFile}.${transport.token}`);
  await using messages = createSshMessages(`${request.sshConfigFile}.${transport.token}.log`, request.stdio[2]);
  const mayBeShared = request.master?.hasSocket() === true;
  const session = start(request, transport, { mark, messages });
  using end = eitherSignal([signal, session.ended]);
  /** Whether the node may have the command, as far as is known before ssh has ended. */
  const mayHaveBegun = (): boolean => mark.isSet() || mayBeShared;
  using refutation = endUnless(mayHaveBegun, session, request.attempt?.refuted);
  const carried = carry(session, request, end.signal);
  try {
    // Once the script is on its way only a failure to deliver it matters; ssh reports the outcome.
    const status = await orAborted(Promise.race([session.status, carried.then(() => session.status)]), signal);
    if (status !== sshFailed) {
      request.attempt?.onBegun();
      messages.release();
      // Not after a session that was shared: a shared one sets no mark.
      if (mark.isSet()) request.master?.open(request.sshConfigFile, request.host);
      return status;
    }
    if (refutation.hasEnded() && !mark.isSet()) throw request.attempt?.refuted.reason;
    // ssh also ends this way after an interrupt from the keyboard, perhaps before this program receives it.
    await orAborted(Bun.sleep(interruptDelayMs), signal);
    if (session.child.signalCode !== null) throw sshKilled(session.child.signalCode);
  } catch (error) {
    if (mayHaveBegun()) request.attempt?.onBegun();
    if (mayHaveBegun() || !session.ended.aborted) await endSession(session, request);
    if (!isHostKeyChange(error) && !refutation.hasEnded()) messages.release();
    throw error;
  }
  // An ssh that tried to log in by itself either set the mark or wrote why it failed.
  const isShared = (mayBeShared || request.master?.hasSocket() === true) && !mark.isSet() && messages.isEmpty();
  const hasBegun = mark.isSet() || isShared;
  if (hasBegun) request.attempt?.onBegun();
  else await request.attempt?.confirm();
  const reason = await whyUnreachable(request);
  if (isHostKeyChange(reason)) throw reason;
  if (!hasBegun && isKeyMissing(reason)) throw reason;
  messages.release();
  if (!hasBegun) throw loginFailed(request.host);
  if (reason !== undefined || (isShared && !(await request.master?.isAlive()))) throw nodeGone(request.host);
  return sshFailed;
}

/** Kills ssh when the signal aborts, unless the command may have begun. */
function endUnless(
  mayHaveBegun: () => boolean,
  { child }: Session,
  refuted: AbortSignal | undefined,
): Disposable & { hasEnded(): boolean } {
  const state = { hasEnded: false };
  const onAbort = (): void => {
    if (mayHaveBegun()) return;
    state.hasEnded = true;
    child.kill("SIGKILL");
  };
  if (refuted?.aborted === true) onAbort();
  refuted?.addEventListener("abort", onAbort, { once: true });
  return {
    hasEnded: () => state.hasEnded,
    [Symbol.dispose]: () => refuted?.removeEventListener("abort", onAbort),
  };
}

/** ssh's exit status for its own failures. */
const sshFailed = 255;
const interruptDelayMs = 50;
const endingGraceMs = 3_000;
const answerGraceMs = 5_000;

interface Session {
  readonly transport: SessionTransport;
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
  transport: SessionTransport,
  { mark, messages }: { readonly mark: LoginMark; readonly messages: SshMessages },
): Session {
  const ssh = findSsh(request.environment);
  const script = sealed(renderSessionScript(request.script), transport.token);
  const [mode, line] = request.terminal
    ? ["-t", terminalLine(transport)]
    : ["-T", pipedLine(transport, Buffer.byteLength(script))];
  const [stdin, stdout, stderr] = request.stdio;
  const sharing = request.master?.options ?? [];
  const options = ["-F", request.sshConfigFile, ...sharing, ...mark.options, ...messages.options, mode];
  const child = Bun.spawn([ssh, ...options, request.host, line], {
    stdio: [request.terminal ? stdin : "pipe", stdout, stderr],
    ...(request.master !== undefined && { cwd: request.master.folder }),
    env: { ...minimalEnvironment(request.environment), ...mark.environment },
  });
  const ended = new AbortController();
  const status = child.exited.then((code) => {
    ended.abort(new ClusterError("connection-failed", "ssh has ended."));
    return child.signalCode === null ? code : sshFailed;
  });
  return { transport, script, child, status, ended: ended.signal, way: {} };
}

/**
 * Resolves when the script, and all of stdin after it, has been sent, or when ssh has ended and it no longer matters.
 */
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
  { transport, script, way }: Session,
  request: SessionRequest,
  signal: AbortSignal,
): Promise<void> {
  way.connection = await request.connect(signal);
  const result = await way.connection.run(deliverCommand(transport, script), signal);
  if (result.status === 0) return;
  const reason = outsideReason(result.stderr) || `status ${result.status}`;
  throw new ClusterError("transfer-failed", `Cannot send the command to ${request.host}: ${reason}.`, {
    hint: "Try again. If this happens again, check the free space in /dev/shm and /tmp on that node.",
    facts: { node: request.host },
  });
}

/**
 * Ends the remote processes first, over the other connection: without a terminal, ending ssh alone would leave them
 * running.
 */
async function endSession({ transport, child, status, way }: Session, request: SessionRequest): Promise<void> {
  const grace = AbortSignal.timeout(endingGraceMs);
  try {
    const connection = request.terminal ? way.connection : await request.connect(grace);
    await connection?.run(endCommand(transport), grace);
  } catch {
    // The node is out of reach, and so are its processes.
  }
  child.kill();
  const insist = setTimeout(() => child.kill("SIGKILL"), endingGraceMs);
  await status;
  clearTimeout(insist);
}

/**
 * Called after a 255, which may be the command's own or ssh's: below LogLevel INFO, ssh prints nothing about a node
 * that falls silent. Undefined if the node answers.
 */
async function whyUnreachable(request: SessionRequest): Promise<unknown> {
  const grace = AbortSignal.timeout(answerGraceMs);
  try {
    const connection = await request.connect(grace);
    await connection.run({ argv: ["true"] }, grace);
    return undefined;
  } catch (error) {
    return error;
  }
}

const isHostKeyChange = (error: unknown): boolean => error instanceof ClusterError && error.id === "host-key-changed";

const isKeyMissing = (error: unknown): boolean => error instanceof ClusterError && error.id === "key-missing";

const sshKilled = (signalName: NodeJS.Signals | number): ClusterError =>
  new ClusterError("connection-failed", `ssh was killed by ${signalName}.`, {
    hint: "Something on this machine killed it, for example because memory ran out. The command on the node was told to stop.",
  });

const loginFailed = (host: string): ClusterError =>
  new ClusterError("connection-failed", `ssh could not log in to ${host}; nothing was run on it.`, {
    facts: { node: host },
  });

const nodeGone = (host: string): ClusterError =>
  new ClusterError("connection-failed", `${host} no longer answers; it is not known whether the command finished.`, {
    facts: { node: host },
  });

/** Returns the path of this machine's `ssh`. Fails as `machine-not-set-up` if there is none. */
export function findSsh(environment: Environment): string {
  const path = Bun.which("ssh", { PATH: environment["PATH"] ?? "" });
  if (path !== null) return path;
  throw new ClusterError("machine-not-set-up", "There is no ssh on this machine's PATH.", {
    hint: "Install the OpenSSH client (Debian and Ubuntu: openssh-client; Fedora: openssh-clients).",
  });
}
