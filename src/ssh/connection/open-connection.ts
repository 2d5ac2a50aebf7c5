import { type Socket, createConnection } from "node:net";
import type { Duplex } from "node:stream";
import type { Client, ConnectConfig, PublicKeyAuthMethod } from "ssh2";
import { ClusterError } from "../../errors.ts";
import { createSemaphore } from "../../system/concurrency.ts";
import { type ByteStream, openProgramStream } from "../../system/processes/program-stream.ts";
import { type Clock, type Runtime, systemClock, passedMs } from "../../system/runtime.ts";
import { outsideLine, withoutFullStop } from "../../system/printable.ts";
import { eitherSignal, orAborted } from "../../system/time-limit.ts";
import {
  type Target,
  connectFailure,
  connectionClosed,
  connectionLost,
  hostKeyChanged,
  isServerOffer,
  isTurnedAway,
  readServerOffer,
  turnedAway,
} from "./connection-errors.ts";
import { unansweredRequests } from "../openssh-files.ts";
import { commandNotBegun } from "../session/session-messages.ts";
import type { Connection, PortAddress } from "./connection.ts";
import type { Link } from "./exec-channel.ts";
import { createRootShells } from "./root-shell.ts";
import { runOverLink } from "./run-over-link.ts";
import { uploadOver } from "./upload.ts";

export interface ConnectionOptions extends Target, Pick<Runtime, "clock" | "progress"> {
  /** In OpenSSH or PEM format. */
  readonly privateKey: string;
  /** ed25519 keys in wire format; the node must present one of them. */
  readonly hostKeys: readonly Buffer[];
  /** The keys that a second connection accepts; default: the same. */
  readonly laterHostKeys?: () => Promise<readonly Buffer[]>;
  /** Called with the accepted key that the node presents. */
  readonly onHostKey?: (key: Buffer) => void;
  /** Opens the TCP connection; absent: to the target's address. */
  readonly connect?: ((signal: AbortSignal) => Promise<ByteStream>) | undefined;
  /** Time limit for the TCP connection; default: 10 s. */
  readonly connectTimeoutMs?: number;
  /** How long the server may be silent during the login; default: 60 s. */
  readonly silenceMs?: number;
  /** Measures that silence; default: the system's. */
  readonly loginClock?: Clock;
  /** Silence before a keepalive request; default: 10 s. See `unansweredRequests`. */
  readonly keepaliveMs?: number;
  /** Whether a refused login is `transient`, because the node's users may not exist yet; default: no. */
  readonly authenticationMayComeLater?: boolean;
}

const longestRefusal = 100;
const commandsAtOnce = 5;
const endingsAtOnce = 2;
const farewellMs = 1_000;

/**
 * Logs in. Throws `connection-failed`, `host-key-changed`, or the signal's reason. Sends nothing to
 * a host with another key.
 */
export async function openConnection(
  options: ConnectionOptions,
  signal: AbortSignal,
): Promise<Connection> {
  // The node starts its end of the connection while this machine reads the client's code.
  const [socket, { Client: Ssh2Client }] = await Promise.all([
    connectSocket(options, signal),
    import("ssh2"),
  ]);
  if (socket.destroyed) throw loginFailure(options, {}, socket.errored ?? undefined);
  const client = new Ssh2Client();
  const lost = new AbortController();
  const seen: ServerSeen = {};
  socket.once("data", (chunk: Buffer) => {
    seen.first = chunk.toString("latin1", 0, longestRefusal);
  });
  const failure = new Promise<never>((_resolve, reject) => {
    const onDown = (error?: Error): void => {
      // Only the first call has an effect.
      reject(loginFailure(options, seen, error));
      lost.abort(connectionLost(options, error));
    };
    client.on("error", onDown).on("close", () => onDown());
  });
  const link: Link = {
    exec: (line, onAnswer) => client.exec(line, onAnswer),
    explain: commandNotBegun,
    target: options,
    clock: options.clock,
    progress: options.progress,
    lost: lost.signal,
    commandSlots: createSemaphore(commandsAtOnce),
    endingSlots: createSemaphore(endingsAtOnce),
    rootShells: createRootShells(),
    openAnother: async (another) => {
      const hostKeys = (await options.laterHostKeys?.()) ?? options.hostKeys;
      return await openConnection({ ...options, hostKeys }, another);
    },
  };
  const ended = new AbortController();
  const slow = silence(options, socket, ended.signal);
  try {
    await login(
      { client, socket, failure: Promise.race([failure, slow]) },
      configuration(options, socket, seen),
      signal,
    );
  } finally {
    ended.abort(new Error("the login has ended"));
  }
  return connectionOver(link, { client, socket }, lost);
}

/** Facts that the server has sent during the login. */
interface ServerSeen {
  /** The beginning of what it sent first. */
  first?: string;
  /** A host key that was not accepted. */
  refused?: Buffer;
  /** ssh2's debug line about the last offer. */
  offer?: string;
}

async function connectSocket(options: ConnectionOptions, signal: AbortSignal): Promise<ByteStream> {
  const { through } = options;
  try {
    if (options.connect !== undefined) return await options.connect(signal);
    if (through !== undefined) return openProgramStream(through.argv, through.environment);
    return await openSocket({ connectTimeoutMs: connectLimitMs, ...options }, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    const mayStillBoot = options.authenticationMayComeLater === true;
    throw error instanceof Error
      ? connectFailure(options, error, { mayStillBoot, offer: undefined })
      : error;
  }
}

function loginFailure(
  options: ConnectionOptions,
  seen: ServerSeen,
  error: Error | undefined,
): Error {
  if (seen.refused !== undefined) return hostKeyChanged(options, options.hostKeys, seen.refused);
  if (isTurnedAway(seen.first ?? "")) return turnedAway(options, error);
  return connectFailure(options, error ?? new Error("the connection was closed during the login"), {
    mayStillBoot: options.authenticationMayComeLater === true,
    offer: seen.offer === undefined ? undefined : readServerOffer(seen.offer),
  });
}

interface Attempt {
  readonly client: Client;
  readonly socket: ByteStream;
  readonly failure: Promise<never>;
}

async function login(
  { client, socket, failure }: Attempt,
  config: ConnectConfig,
  signal: AbortSignal,
): Promise<void> {
  const ready = new Promise<void>((resolve) => {
    client.once("ready", resolve);
  });
  try {
    signal.throwIfAborted();
    client.connect(config);
    await orAborted(Promise.race([ready, failure]), signal);
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    // From now on the link reports a loss.
    failure.catch(() => {});
  }
}

function configuration(
  options: ConnectionOptions,
  socket: ByteStream,
  seen: ServerSeen,
): ConnectConfig {
  // The method is named explicitly, which saves the round trip that asks for the available methods.
  const loginMethod: PublicKeyAuthMethod = {
    type: "publickey",
    username: options.user,
    key: options.privateKey,
  };
  return {
    sock: socket,
    username: options.user,
    authHandler: [loginMethod],
    algorithms: { serverHostKey: ["ssh-ed25519"] },
    hostVerifier: (key: Buffer) => {
      const isAccepted = options.hostKeys.some((accepted) => accepted.equals(key));
      if (isAccepted) options.onHostKey?.(key);
      else seen.refused = key;
      return isAccepted;
    },
    debug: (line: string) => {
      if (isServerOffer(line)) seen.offer = line;
    },
    // See `silence`.
    readyTimeout: 0,
    keepaliveInterval: options.keepaliveMs ?? 10_000,
    keepaliveCountMax: unansweredRequests(options.host),
  };
}

function connectionOver(
  link: Link,
  { client, socket }: Pick<Attempt, "client" | "socket">,
  lost: AbortController,
): Connection {
  return {
    get isOpen() {
      return !link.lost.aborted;
    },
    run: (command, signal) => runOverLink(link, command, signal),
    upload: (source, target, signal) => uploadOver(link, source, target, signal),
    openPort: (address, signal) => openPort(client, address, [signal, link.lost]),
    [Symbol.asyncDispose]: async () => {
      lost.abort(connectionClosed(link.target));
      await closed(client, socket);
    },
  };
}

async function openPort(
  client: Client,
  { host, port }: PortAddress,
  signals: readonly AbortSignal[],
): Promise<Duplex> {
  using either = eitherSignal(signals);
  const { signal } = either;
  const opening = new Promise<Duplex>((resolve, reject) => {
    signal.throwIfAborted();
    client.forwardOut("127.0.0.1", 0, host, port, (error, channel) => {
      if (error === undefined) resolve(channel);
      else reject(new Error(withoutFullStop(outsideLine(error.message))));
      if (signal.aborted) channel?.destroy();
    });
  });
  return await orAborted(opening, signal);
}

/** Sends a disconnect message. The server takes a while to end its session, for which nobody needs to wait. */
function closed(client: Client, socket: ByteStream): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    const timer = setTimeout(() => socket.destroy(), farewellMs);
    socket.once("finish", () => socket.destroy());
    socket.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    client.end();
  });
}

/**
 * Rejects when the server has been silent for too long during a login, or keeps it waiting for much
 * too long. A translated node on a busy computer needs minutes for a login, but goes on sending its
 * greeting, its keys and its answers.
 */
async function silence(
  options: ConnectionOptions,
  socket: Pick<ByteStream, "bytesRead">,
  signal: AbortSignal,
): Promise<never> {
  const { silenceMs = silenceLimitMs, loginClock: clock = systemClock } = options;
  const givesUpAtMs = passedMs(clock) + loginLimitMs;
  for (let heard = -1; heard !== socket.bytesRead && passedMs(clock) < givesUpAtMs;) {
    heard = socket.bytesRead;
    await clock.sleep(silenceMs, signal);
  }
  throw loginFailure(
    options,
    {},
    Object.assign(new Error("no answer"), { level: "client-timeout" }),
  );
}

/** A machine that is gone drops packets. */
const connectLimitMs = 10_000;
/** How long an SSH server that has accepted a connection may be silent. */
const silenceLimitMs = 60_000;
/** Otherwise a server that sends a byte now and then could hold a command for ever. */
const loginLimitMs = 10 * 60_000;

interface SocketTarget {
  readonly host: string;
  readonly port: number;
  /**
   * A machine that isn't up yet drops packets, so retrying soon is better than waiting for TCP's
   * ever longer pauses.
   */
  readonly connectTimeoutMs: number;
}

/**
 * Opens a TCP connection. Rejects with the system's error (`ETIMEDOUT` after the time limit), or
 * the signal's reason.
 */
export function openSocket(
  { host, port, connectTimeoutMs }: SocketTarget,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = createConnection({ host, port, noDelay: true });
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      // A late error needs a listener, or it ends the program.
      socket.removeAllListeners().on("error", () => {});
      act();
    };
    const fail = (reason: unknown): void =>
      settle(() => {
        socket.destroy();
        reject(reason);
      });
    const onAbort = (): void => fail(signal.reason);
    const timer = setTimeout(
      () => fail(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })),
      connectTimeoutMs,
    );
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("error", fail).once("connect", () => settle(() => resolve(socket)));
  });
}
