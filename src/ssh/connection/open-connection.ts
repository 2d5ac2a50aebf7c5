import type { Socket } from "node:net";
import type { Client, ConnectConfig, PublicKeyAuthMethod } from "ssh2";
import type { Clock } from "../../system/clock.ts";
import type { Progress } from "../../system/progress.ts";
import { connectFailure, connectionClosed, connectionLost, hostKeyChanged } from "./connection-errors.ts";
import type { Target } from "./connection-errors.ts";
import type { Connection } from "./connection.ts";
import type { Link } from "./link.ts";
import { openSocket } from "./open-socket.ts";
import { runCommand } from "./run-command.ts";
import { readServerOffer, type ServerOffer } from "./server-offer.ts";
import { createTurns } from "../turns.ts";
import { uploadOver } from "./upload.ts";

export interface ConnectionOptions extends Target {
  /** In OpenSSH's or PEM format. */
  readonly privateKey: string;
  /** ed25519 keys in wire form; the node must show one of them. */
  readonly hostKeys: readonly Buffer[];
  /** Those that a second connection accepts; the same where this is left out. */
  readonly laterHostKeys?: () => Promise<readonly Buffer[]>;
  /** Told which of the accepted keys the node shows. */
  readonly onHostKey?: (key: Buffer) => void;
  /** For TCP to connect. */
  readonly connectTimeoutMs: number;
  /** From then to the finished login. */
  readonly readyTimeoutMs: number;
  /** Silence after which the node is asked for a sign of life; with three such questions unanswered it counts as lost. */
  readonly keepaliveMs: number;
  /** Whether a refused login is `transient`, because the node's users may not be made yet. */
  readonly authenticationMayComeLater: boolean;
  readonly clock: Clock;
  readonly progress: Progress;
}

const commandsAtOnce = 5;
const endingsAtOnce = 2;
const farewellMs = 1_000;

/** Logs in. Rejects as `connection-failed` or `host-key-changed`, or with the signal's reason. Nothing is sent to a host with another key. */
export async function openConnection(options: ConnectionOptions, signal: AbortSignal): Promise<Connection> {
  const { Client: Ssh2Client } = await import("ssh2");
  const socket = await connectSocket(options, signal);
  const client = new Ssh2Client();
  const lost = new AbortController();
  const seen: ServerSeen = {};
  const failure = new Promise<never>((_resolve, reject) => {
    const onDown = (error?: Error): void => {
      if (lost.signal.aborted) return;
      reject(loginFailure(options, seen, error));
      lost.abort(connectionLost(options, error));
    };
    client.on("error", onDown).on("close", () => onDown());
  });
  const link: Link = {
    client,
    target: options,
    clock: options.clock,
    progress: options.progress,
    lost: lost.signal,
    commandTurns: createTurns(commandsAtOnce),
    endingTurns: createTurns(endingsAtOnce),
    openAnother: async (another) => {
      const hostKeys = (await options.laterHostKeys?.()) ?? options.hostKeys;
      return await openConnection({ ...options, hostKeys }, another);
    },
  };
  await login({ client, socket, failure }, configuration(options, socket, seen), signal);
  return connectionOver(link, socket, lost);
}

/** What the server showed of itself. */
interface ServerSeen {
  /** A host key that isn't accepted. */
  refused?: Buffer;
  offer?: ServerOffer;
}

async function connectSocket(options: ConnectionOptions, signal: AbortSignal): Promise<Socket> {
  try {
    return await openSocket(options, signal);
  } catch (error) {
    signal.throwIfAborted();
    const mayStillBoot = options.authenticationMayComeLater;
    throw error instanceof Error ? connectFailure(options, error, { mayStillBoot, offer: undefined }) : error;
  }
}

function loginFailure(options: ConnectionOptions, seen: ServerSeen, error: Error | undefined): Error {
  if (seen.refused !== undefined) return hostKeyChanged(options, options.hostKeys, seen.refused);
  return connectFailure(options, error ?? new Error("connection closed during the login"), {
    mayStillBoot: options.authenticationMayComeLater,
    offer: seen.offer,
  });
}

interface Attempt {
  readonly client: Client;
  readonly socket: Socket;
  readonly failure: Promise<never>;
}

async function login({ client, socket, failure }: Attempt, config: ConnectConfig, signal: AbortSignal): Promise<void> {
  const ready = new Promise<void>((resolve) => {
    client.once("ready", resolve);
  });
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    client.connect(config);
    await Promise.race([ready, failure, aborted.promise]);
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    // From now on a loss is told through the link.
    failure.catch(() => {});
  }
}

/** Named outright, so that no round trip goes into asking which ways of login there are. */
const loginMethod = (options: ConnectionOptions): PublicKeyAuthMethod => ({
  type: "publickey",
  username: options.user,
  key: options.privateKey,
});

function configuration(options: ConnectionOptions, socket: Socket, seen: ServerSeen): ConnectConfig {
  return {
    sock: socket,
    username: options.user,
    authHandler: [loginMethod(options)],
    algorithms: { serverHostKey: ["ssh-ed25519"] },
    hostVerifier: (key: Buffer) => {
      const isAccepted = options.hostKeys.some((accepted) => accepted.equals(key));
      if (isAccepted) options.onHostKey?.(key);
      else seen.refused = key;
      return isAccepted;
    },
    debug: (line: string) => {
      const offer = readServerOffer(line);
      if (offer !== undefined) seen.offer = offer;
    },
    readyTimeout: options.readyTimeoutMs,
    keepaliveInterval: options.keepaliveMs,
    keepaliveCountMax: 3,
  };
}

function connectionOver(link: Link, socket: Socket, lost: AbortController): Connection {
  return {
    get isOpen() {
      return !link.lost.aborted;
    },
    run: (command, signal) => runCommand(link, command, signal),
    upload: (source, target, signal) => uploadOver(link, source, target, signal),
    [Symbol.asyncDispose]: async () => {
      lost.abort(connectionClosed(link.target));
      await closed(link.client, socket);
    },
  };
}

/** Says good-bye, and doesn't wait long for an answer. */
function closed(client: Client, socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    const timer = setTimeout(() => socket.destroy(), farewellMs);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    client.end();
  });
}
