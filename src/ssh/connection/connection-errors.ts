import { ClusterError } from "../../errors.ts";
import type { Passage } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { outsideLine, withoutFullStop } from "../../system/printable.ts";
import { fingerprint } from "../keys.ts";

export interface Target {
  /** The node's reference, such as `agent_2`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly through?: Passage;
}

/** The fields that ssh2 adds to its errors. https://github.com/mscdex/ssh2#client-events */
interface Ssh2Error extends Error {
  readonly level?: string;
  readonly code?: string | number;
}

export const addressOf = ({ name, host, port, through }: Target): string =>
  through === undefined ? `${name} (${host} port ${port})` : `${name} (through ${through.title})`;
const factsOf = (target: Target): Readonly<Record<string, unknown>> => ({
  node: target.name,
  host: target.host,
  port: target.port,
});

/**
 * Explains why a connection failed. Refusals, timeouts, resets and unknown names are transient,
 * because they occur while machines boot; a refused login or a failed handshake is transient only
 * with `mayStillBoot`. `offer` is the last offer that the server sent.
 */
export function connectFailure(
  target: Target,
  error: Ssh2Error,
  circumstances: Circumstances,
): ClusterError {
  const { message, ...detail } = describeFailure(target, error, circumstances);
  return new ClusterError("connection-failed", message, {
    ...detail,
    facts: factsOf(target),
    cause: error,
  });
}

interface Circumstances {
  readonly mayStillBoot: boolean;
  readonly offer: ServerOffer | undefined;
}

interface FailureText {
  readonly message: string;
  readonly transient: boolean;
  readonly hint?: string;
}

/** Lines of sshd_config that make a server acceptable. This program and OpenSSH since 6.5 know each value. */
const remedies: Readonly<Record<ServerOffer["part"], string>> = {
  "key exchange": "KexAlgorithms +curve25519-sha256@libssh.org",
  "host key": "HostKey /etc/ssh/ssh_host_ed25519_key",
  cipher: "Ciphers +aes256-gcm@openssh.com",
  MAC: "MACs +hmac-sha2-256",
};

function noAgreement(address: string, offer: ServerOffer): Omit<FailureText, "transient"> {
  const { part, names } = offer;
  const offered =
    names.length === 0 ? "no algorithm that this program knows" : outside(names.join(", "));
  return {
    message: `The SSH server of ${address} and this program have no ${part} in common. It offers ${offered}.`,
    hint: `Choose an image whose SSH server allows another ${part}, or add this to its sshd_config: ${remedies[part]}`,
  };
}

function describeFailure(
  target: Target,
  error: Ssh2Error,
  { mayStillBoot, offer }: Circumstances,
): FailureText {
  const address = addressOf(target);
  if (error.message.startsWith("Bad packet length")) return tooMuchAtOnce(address);
  switch (error.level) {
    case "client-authentication":
      return {
        message: `${address} refused the login of ${target.user} with the cluster's key.`,
        transient: mayStillBoot,
      };
    case "handshake":
      if (offer !== undefined && /no matching/.test(error.message)) {
        // The server may still be making its host keys; everything else that it offers is fixed in its image.
        return {
          ...noAgreement(address, offer),
          transient: mayStillBoot && offer.part === "host key",
        };
      }
      return {
        message: `${address} and this program cannot agree on a protocol: ${withoutFullStop(outsideLine(error.message))}.`,
        transient: mayStillBoot,
      };
    case "client-timeout":
      return {
        message: `${address} accepted the connection, but its SSH server did not answer in time.`,
        transient: true,
      };
    default:
      return { message: `Cannot reach ${address}: ${reasonOf(error)}.`, transient: true };
  }
}

/** ssh2 1.17 rejects packets above 35,000 bytes. During a login only a banner can be that long. */
const tooMuchAtOnce = (address: string): FailureText => ({
  message: `The SSH server of ${address} sends a banner that is too long, more than 35,000 bytes.`,
  hint: "Shorten or remove the Banner in the sshd_config of its image, or choose another image.",
  transient: false,
});

/** The cause of a failure that ends by itself. */
export class TurnedAway extends Error {}

/** What sshd sends in place of its greeting. https://man.openbsd.org/sshd_config#PerSourcePenalties */
export const isTurnedAway = (first: string): boolean =>
  /^(?:Not allowed at this time|Exceeded MaxStartups)/.test(first);

/** For a server that accepts no connections from this computer for some seconds, such as after many without a login. */
export function turnedAway(target: Target, error: Error | undefined): ClusterError {
  const message = `${addressOf(target)} accepts no connections from this computer now, because there were too many.`;
  return new ClusterError("connection-failed", message, {
    hint: "Try again in a minute. If this happens again, change PerSourcePenalties or MaxStartups in the sshd_config of that node.",
    transient: true,
    facts: factsOf(target),
    cause: new TurnedAway(message, { cause: error }),
  });
}

const tryAgain =
  "Try again. If this happens again, the machine is overloaded or shutting down: check its console output.";

export function connectionLost(target: Target, error: Error | undefined): ClusterError {
  const reason = error === undefined ? "the node closed it" : reasonOf(error);
  const message = `The connection to ${addressOf(target)} was lost: ${reason}.`;
  return new ClusterError("connection-failed", message, {
    hint: tryAgain,
    transient: true,
    facts: factsOf(target),
    cause: error,
  });
}

/** For a connection that this program itself closed. */
export function connectionClosed(target: Target): ClusterError {
  return new ClusterError(
    "connection-failed",
    `The connection to ${addressOf(target)} is closed.`,
    {
      facts: factsOf(target),
    },
  );
}

/** For an open connection on which the node refused a channel for a command. */
export function channelRefused(target: Target, error: Error): ClusterError {
  const message = `${addressOf(target)} did not accept a command: ${withoutFullStop(outsideLine(error.message))}.`;
  return new ClusterError("connection-failed", message, {
    hint: tryAgain,
    transient: true,
    facts: factsOf(target),
    cause: error,
  });
}

/** For a command that has begun, but whose own shell did not say how it has ended, while sshd reported no failure. */
export const endUnknown = (target: Target): ClusterError =>
  new ClusterError(
    "remote-command-failed",
    `${addressOf(target)} did not report how the command ended.`,
    {
      hint: "Something on the node ended the command's shell, or replaced its exit status: check the node's sshd_config for a ForceCommand.",
      facts: { node: target.name },
    },
  );

export function hostKeyChanged(
  target: Target,
  accepted: readonly Uint8Array[],
  seen: Uint8Array,
): ClusterError {
  const expected = accepted.map(fingerprint).join(" or ");
  const message = `${addressOf(target)} presented a host key other than the pinned one: expected ${expected}, seen ${fingerprint(seen)}.`;
  return new ClusterError("host-key-changed", message, {
    hint: "Another machine may have this address now, or somebody may be intercepting the connection. Nothing was sent. If the cluster's machines have terminated, create the cluster again.",
    facts: { ...factsOf(target), expected, seen: fingerprint(seen) },
  });
}

const reasons: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "connection refused",
    ECONNRESET: "connection reset",
    EPIPE: "connection reset",
    ETIMEDOUT: "no answer",
    EHOSTUNREACH: "no route to host",
    ENETUNREACH: "no route to network",
    ENOTFOUND: "unknown host name",
    EAI_AGAIN: "host name lookup failed",
    "Keepalive timeout": "it no longer answers",
    "Connection lost before handshake": "the connection was closed before its SSH server answered",
  }),
);

/** Quotes the server in one line, because anyone who answers can disconnect with any text. */
const reasonOf = (error: Ssh2Error): string =>
  reasons.get(String(error.code)) ??
  reasons.get(error.message) ??
  withoutFullStop(outsideLine(error.message));

/** The algorithms that an SSH server offers for one part of the encryption, in its order of preference. */
export interface ServerOffer {
  readonly part: OfferedPart;
  readonly names: readonly string[];
}

type OfferedPart = "key exchange" | "host key" | "cipher" | "MAC";

/** The names in the debug lines of ssh2 1.17. Nothing else shows a server's offers if no algorithm matches. */
const parts: Readonly<Record<string, OfferedPart>> = {
  "KEX method": "key exchange",
  "Host key format": "host key",
  "C->S cipher": "cipher",
  "S->C cipher": "cipher",
  "C->S MAC": "MAC",
  "S->C MAC": "MAC",
};
const mostNames = 8;

/**
 * Whether this is one of ssh2's debug lines about what the server offers. There are hundreds of
 * others for each connection.
 */
export const isServerOffer = (debugLine: string): boolean =>
  debugLine.startsWith("Handshake: (remote) ");

/** Parses one of ssh2's debug lines; undefined if it isn't about an offer. */
export function readServerOffer(debugLine: string): ServerOffer | undefined {
  const [, name = "", list = ""] = /^Handshake: \(remote\) ([^:]+): (.*)$/.exec(debugLine) ?? [];
  const part = parts[name];
  if (part === undefined) return undefined;
  // The names come from outside. Those in https://www.rfc-editor.org/rfc/rfc4251#section-6 are short and printable.
  const names = list
    .split(",")
    .filter((each) => /^[\w@.+-]{1,64}$/.test(each) && !isNoAlgorithm(each));
  return { part, names: names.slice(0, mostNames) };
}

/** Extensions that servers list among their key exchange methods. */
const isNoAlgorithm = (name: string): boolean => /^(?:ext-info-|kex-strict-)/.test(name);
