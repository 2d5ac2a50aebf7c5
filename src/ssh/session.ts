import { ClusterError } from "../errors.ts";
import type { Environment } from "../system/environment.ts";
import type { Connection } from "./connection.ts";
import { eitherSignal } from "./either-signal.ts";
import { childEnvironment, findSsh } from "./local-ssh.ts";
import { createMeetingPlace, deliveringCommand, endingCommand, runningLine } from "./meeting-place.ts";
import type { MeetingPlace } from "./meeting-place.ts";
import { renderSessionScript } from "./session-script.ts";
import type { SessionScript } from "./session-script.ts";

export interface SessionRequest {
  /** With a `Host` block of the name `host`: see renderSshConfig. */
  readonly sshConfigFile: string;
  /** The node's reference. */
  readonly host: string;
  /** Whether the command runs as root, by `sudo -n` where the login user is another: `loginUser` tells. */
  readonly sudo: boolean;
  readonly loginUser: string;
  /** Whether the command gets a terminal: this program's own stdin must be one. */
  readonly terminal: boolean;
  /** What the ssh process has for stdin, stdout and stderr: this program's own, or open files. */
  readonly stdio: readonly ["inherit" | number, "inherit" | number, "inherit" | number];
  /** Of this program. */
  readonly environment: Environment;
  /** Opens the way on which the script is sent and the session is ended, and finds out what to run. ssh logs in at the same time. */
  prepare(signal: AbortSignal): Promise<{ readonly connection: Connection; readonly script: SessionScript }>;
}

/**
 * Runs a person's command through this machine's `ssh`, which owns terminal, stdin and output meanwhile. Resolves with the remote command's own
 * status, 128 + n where it died by a signal, or with 255 after a line of ssh's on stderr. Rejects with what `prepare` rejects with; on
 * abort with the signal's reason, after the remote processes were told to end.
 */
export async function runSession(request: SessionRequest, signal: AbortSignal): Promise<number> {
  const ssh = findSsh(request.environment);
  signal.throwIfAborted();
  const session = startSsh(ssh, request);
  using end = eitherSignal([signal, session.ended]);
  const way: Way = {};
  const delivery = deliver({ ...session, way }, request, end.signal);
  try {
    // Only a failed delivery is of interest: once it has come about, ssh alone says how it goes on.
    const status = await Promise.race([session.status, delivery.then(() => session.status), rejection(signal)]);
    if (status !== sshFailed) return status;
  } catch (error) {
    await endSession({ ...session, way });
    throw error;
  }
  // Interrupted from the keyboard, ssh may end a moment before this program hears of it.
  await endSession({ ...session, way });
  signal.throwIfAborted();
  return sshFailed;
}

/** What ssh exits with for failures of its own. */
const sshFailed = 255;
const endingPatienceMs = 3_000;

/** The connection on which the script is sent; it also serves to end what the script has begun. */
interface Way {
  connection?: Connection;
}

interface Session {
  readonly place: MeetingPlace;
  readonly asRoot: boolean;
  readonly child: Bun.Subprocess;
  readonly status: Promise<number>;
  /** Aborted when ssh has ended. */
  readonly ended: AbortSignal;
}

function startSsh(ssh: string, request: SessionRequest): Session {
  const place = createMeetingPlace();
  const asRoot = request.sudo && request.loginUser !== "root";
  const terminal = request.terminal ? "-t" : "-T";
  const child = Bun.spawn([ssh, "-F", request.sshConfigFile, terminal, request.host, runningLine(place, asRoot)], {
    stdio: [...request.stdio],
    env: childEnvironment(request.environment),
  });
  const ended = new AbortController();
  const status = child.exited.then((code) => {
    ended.abort(new ClusterError("connection-failed", "ssh has ended"));
    return child.signalCode === null ? code : sshFailed;
  });
  return { place, asRoot, child, status, ended: ended.signal };
}

async function deliver(
  { place, way }: Session & { way: Way },
  request: SessionRequest,
  signal: AbortSignal,
): Promise<void> {
  const { connection, script } = await request.prepare(signal);
  way.connection = connection;
  const result = await connection.run(deliveringCommand(place, renderSessionScript(script)), signal);
  if (result.status === 0) return;
  const reason = result.stderr.trim() || `status ${result.status}`;
  throw new ClusterError("transfer-failed", `The command could not be sent to ${request.host}: ${reason}`);
}

/** Remote processes first, by way of the other connection: ssh alone, without a terminal, would leave them running. */
async function endSession({ place, asRoot, child, status, way }: Session & { way: Way }): Promise<void> {
  try {
    await way.connection?.run(endingCommand(place, asRoot), AbortSignal.timeout(endingPatienceMs));
  } catch {
    // The node is out of reach, and so is what runs there.
  }
  child.kill();
  const insist = setTimeout(() => child.kill("SIGKILL"), endingPatienceMs);
  await status;
  clearTimeout(insist);
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
