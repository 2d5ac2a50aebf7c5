import type { FileSink } from "bun";
import { ClusterError } from "../../errors.ts";
import { errorCode } from "../../system/files/private-file.ts";
import { outsideReason } from "../../system/printable.ts";
import { endWithThisProgram } from "../../system/processes/if-killed.ts";
import { minimalEnvironment } from "../../system/processes/run-program.ts";
import type { Environment } from "../../system/runtime.ts";
import { onAbort, orAborted } from "../../system/time-limit.ts";
import type { Connection } from "../connection/connection.ts";
import { findSsh } from "../find-ssh.ts";
import { sshEnvironment } from "../ssh-environment.ts";
import type { MasterConnection } from "./master-connection.ts";
import {
  type SessionScript,
  type SessionTransport,
  deliverCommand,
  endCommand,
  pipedLine,
  renderSessionScript,
  sealed,
  terminalLine,
} from "./session-line.ts";
import type { LoginMark, SshMessages } from "./session-messages.ts";
import { type OutputTarget, type SessionOutput, startWithOutput } from "./session-output.ts";
import { type SessionProof, passOutput } from "./pass-output.ts";

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
  /** Sees the output of a command without a terminal. */
  readonly onOutput?: ((chunk: Uint8Array) => void) | undefined;
  /** This program's environment. */
  readonly environment: Environment;
  /** Used if it is open, and otherwise opened after a session that logged in; undefined: every session logs in. */
  readonly master: MasterConnection | undefined;
  /**
   * Opens a second connection to the node. Used at once for a session with a terminal, otherwise only after a session
   * that was interrupted or ended with 255.
   */
  connect(signal: AbortSignal): Promise<Connection>;
}

type SessionStdio = readonly [
  stdin: "inherit" | number,
  stdout: OutputTarget,
  stderr: OutputTarget,
];

/** ssh's exit status for its own failures. */
export const sshFailed = 255;
/** The status of a command that has ended by SIGPIPE. */
export const brokenPipeStatus = 141;
const endingGraceMs = 3_000;

/** A running ssh. */
export interface Ssh {
  readonly transport: SessionTransport;
  /** How the script is delivered; see session-line.ts. */
  readonly script: string;
  readonly child: Bun.Subprocess;
  readonly output: SessionOutput;
  /** Resolves when ssh has ended, and all that it wrote has arrived. */
  readonly status: Promise<number>;
  /** Aborts when ssh has ended. */
  readonly ended: AbortSignal;
  readonly proof: SessionProof;
  /** The connection that delivered the script to a session with a terminal. */
  readonly delivery: { connection?: Connection; isDone?: boolean };
}

export function startSsh(
  request: SessionRequest,
  transport: SessionTransport,
  { mark, messages }: { readonly mark: LoginMark; readonly messages: SshMessages },
  signal: AbortSignal,
): Ssh {
  const ssh = findSsh(request.environment);
  const script = sealed(renderSessionScript(request.script), transport.token);
  const [mode, line] = request.terminal
    ? ["-t", terminalLine(transport)]
    : ["-T", pipedLine(transport, Buffer.byteLength(script))];
  const [stdin, ...outputs] = request.stdio;
  const { environment } = request;
  const sharing = request.master?.options ?? [];
  const options = [
    "-F",
    request.sshConfigFile,
    ...sharing,
    ...mark.options,
    ...messages.options,
    mode,
  ];
  const start = ([stdout, stderr]: readonly [OutputTarget | "pipe", OutputTarget | "pipe"]) =>
    Bun.spawn([ssh, ...options, request.host, line], {
      stdio: [request.terminal ? stdin : "pipe", stdout, stderr],
      ...(request.master !== undefined && { cwd: request.master.folder }),
      env: { ...sshEnvironment(environment), ...mark.environment },
    });
  const delivery: Ssh["delivery"] = {};
  const { token } = transport;
  const { child, output, proof } = request.terminal
    ? { ...startWithOutput(outputs, start), proof: createDeliveryProof(delivery) }
    : startWithProof({ token, targets: outputs, onOutput: request.onOutput, start }, signal);
  endWithThisProgram(child, environment);
  const ended = new AbortController();
  const status = child.exited.then(async (code) => {
    ended.abort(new ClusterError("connection-failed", "ssh has ended."));
    await output.arrived;
    return child.signalCode === null ? code : sshFailed;
  });
  return { transport, script, child, output, status, ended: ended.signal, proof, delivery };
}

/**
 * On a terminal, ssh owns the output. The script can be delivered only if the login shell has run
 * our line, which then waits for it.
 */
function createDeliveryProof(delivery: Ssh["delivery"]): SessionProof {
  return {
    hasBegun: () => delivery.isDone === true,
    end: () => undefined,
    noise: () => "",
    isUnread: () => false,
    loss: () => undefined,
    ended: new Promise(() => {}),
    passed: Promise.resolve(),
  };
}

interface ProofStart extends Pick<SessionRequest, "onOutput"> {
  readonly token: string;
  readonly targets: readonly [stdout: OutputTarget, stderr: OutputTarget];
  readonly start: (stdio: readonly ["pipe", "pipe"]) => Bun.Subprocess;
}

function startWithProof({ token, targets, onOutput, start }: ProofStart, signal: AbortSignal) {
  const child = start(["pipe", "pipe"]);
  const { stdout, stderr } = child;
  if (typeof stdout !== "object" || typeof stderr !== "object")
    throw new TypeError("ssh has no pipes");
  const proof = passOutput({ token, stdout, stderr, targets, onOutput }, signal);
  return { child, proof, output: { arrived: proof.passed.catch(() => {}), abandon: () => {} } };
}

/**
 * Resolves when the script, and all of stdin after it, has been sent, or when ssh has ended and it
 * no longer matters.
 */
export async function carryInput(
  ssh: Ssh,
  request: SessionRequest,
  login: Login,
  signal: AbortSignal,
): Promise<void> {
  try {
    await (request.terminal ? deliver(ssh, request, signal) : feed(ssh, request, login, signal));
  } catch (error) {
    if (!ssh.ended.aborted) throw error;
  }
}

interface Login {
  /** Nothing of stdin is read before, so that another session may get it. */
  readonly connected: Promise<unknown>;
}

async function feed(
  { child, script }: Ssh,
  { stdio, environment }: SessionRequest,
  { connected }: Login,
  signal: AbortSignal,
): Promise<void> {
  const sink = child.stdin;
  if (typeof sink !== "object") throw new TypeError("ssh was started without a pipe for its stdin");
  await feedStdin(
    {
      head: script,
      after: connected,
      source: stdio[0],
      sink,
      environment: minimalEnvironment(environment),
    },
    signal,
  );
}

async function deliver(
  { transport, script, delivery }: Ssh,
  request: SessionRequest,
  signal: AbortSignal,
): Promise<void> {
  delivery.connection = await request.connect(signal);
  const result = await delivery.connection.run(deliverCommand(transport, script), signal);
  if (result.status === 0) {
    delivery.isDone = true;
    return;
  }
  const reason = outsideReason(result.stderr) || `status ${result.status}`;
  throw new ClusterError(
    "transfer-failed",
    `Cannot send the command to ${request.host}: ${reason}.`,
    {
      hint: "Try again. If this happens again, check the free space in /dev/shm and /tmp on that node.",
      facts: { node: request.host },
    },
  );
}

export async function endRemoteProcesses(
  { transport, delivery }: Ssh,
  request: SessionRequest,
): Promise<void> {
  const grace = AbortSignal.timeout(endingGraceMs);
  try {
    const connection = request.terminal ? delivery.connection : await request.connect(grace);
    await connection?.run(endCommand(transport), grace);
  } catch {
    // The node is out of reach, and so are its processes.
  }
}

export async function endSsh({ child, output }: Ssh): Promise<void> {
  child.kill();
  const insist = setTimeout(() => child.kill("SIGKILL"), endingGraceMs);
  await child.exited;
  clearTimeout(insist);
  output.abandon();
}

interface StdinFeed {
  /** Sent first. */
  readonly head: string;
  /** Nothing of the source is read before it resolves; absent: at once. */
  readonly after?: Promise<unknown>;
  /** Sent next: this program's own stdin, or an open file. */
  readonly source: "inherit" | number;
  readonly sink: FileSink;
  readonly environment: Environment;
}

/**
 * Sends a text of ours and then stdin, no faster than the receiver reads, until stdin ends or the
 * signal aborts. A separate `cat` reads stdin, because a read from a terminal can't be cancelled,
 * and would keep this process alive.
 */
export async function feedStdin(
  { head, after, source, sink, environment }: StdinFeed,
  signal: AbortSignal,
): Promise<void> {
  try {
    await pass(sink, Buffer.from(head));
    if (after !== undefined) await orAborted(after, signal);
    if (!signal.aborted) await feedSource({ source, sink, environment }, signal);
  } catch (error) {
    // The receiver has gone, as in `yes | program | head`; its exit status says why.
    if (!signal.aborted && errorCode(error) !== "EPIPE") throw error;
  }
}

async function feedSource(
  { source, sink, environment }: Omit<StdinFeed, "head" | "after">,
  signal: AbortSignal,
): Promise<void> {
  const env = minimalEnvironment(environment);
  const cat = Bun.spawn(["cat"], { stdio: [source, "pipe", "ignore"], env });
  endWithThisProgram(cat, environment);
  const stop = (): void => cat.kill();
  using _ = onAbort(signal, stop);
  try {
    for await (const chunk of cat.stdout) await pass(sink, chunk);
    await sink.end();
  } finally {
    stop();
  }
}

async function pass(sink: FileSink, chunk: Uint8Array): Promise<void> {
  await sink.write(chunk);
  await sink.flush();
}
