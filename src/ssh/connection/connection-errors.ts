import { ClusterError } from "../../errors.ts";
import type { ServerOffer } from "./server-offer.ts";
import { fingerprint } from "./wire.ts";

/** The destination of a connection, for messages. */
export interface Target {
  /** The node's reference, such as `agent_2`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
}

/** The fields that ssh2 adds to its errors. https://github.com/mscdex/ssh2#client-events */
interface Ssh2Error extends Error {
  readonly level?: string;
  readonly code?: string | number;
}

export const addressOf = (target: Target): string => `${target.name} (${target.host} port ${target.port})`;
const factsOf = (target: Target): Readonly<Record<string, unknown>> => ({
  node: target.name,
  host: target.host,
  port: target.port,
});

/**
 * Explains why a connection failed. Refusals, timeouts, resets and unknown names are transient, because they occur while machines boot; a refused
 * login or a failed handshake is transient only with `mayStillBoot`. `offer` is the last offer that the server sent.
 */
export function connectFailure(
  target: Target,
  error: Ssh2Error,
  { mayStillBoot, offer }: { readonly mayStillBoot: boolean; readonly offer: ServerOffer | undefined },
): ClusterError {
  const failure = describeFailure(target, error, { mayStillBoot, offer });
  const { message, transient, hint } = failure;
  return new ClusterError("connection-failed", message, {
    ...(hint !== undefined && { hint }),
    transient,
    facts: factsOf(target),
    cause: error,
  });
}

interface FailureText {
  readonly message: string;
  readonly transient: boolean;
  readonly hint?: string;
}

/** What to change on the server, as lines of OpenSSH's sshd_config. This program and OpenSSH since 6.5 know each value. */
const remedies: Readonly<Record<ServerOffer["part"], string>> = {
  "key exchange": "KexAlgorithms +curve25519-sha256@libssh.org",
  "host key": "HostKey /etc/ssh/ssh_host_ed25519_key",
  cipher: "Ciphers +aes256-gcm@openssh.com",
  MAC: "MACs +hmac-sha2-256",
};

function noAgreement(address: string, offer: ServerOffer): Omit<FailureText, "transient"> {
  const { part, names } = offer;
  const offered = names.length === 0 ? "nothing that this program knows" : names.join(", ");
  return {
    message: `The SSH server of ${address} and this program have no ${part} in common. It offers ${offered}.`,
    hint: `Choose an image whose SSH server allows another ${part}, or add this to its sshd_config: ${remedies[part]}`,
  };
}

function describeFailure(
  target: Target,
  error: Ssh2Error,
  { mayStillBoot, offer }: { readonly mayStillBoot: boolean; readonly offer: ServerOffer | undefined },
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
        return { ...noAgreement(address, offer), transient: mayStillBoot && offer.part === "host key" };
      }
      return {
        message: `${address} and this program don't agree on how to speak: ${error.message}.`,
        transient: mayStillBoot,
      };
    case "client-timeout":
      return {
        message: `${address} accepted the connection but its SSH server didn't answer in time.`,
        transient: true,
      };
    default:
      return { message: `${address} can't be reached: ${reasonOf(error)}.`, transient: true };
  }
}

/** ssh2 1.17 rejects packets above 35,000 bytes. During a login only a banner can be that long. */
const tooMuchAtOnce = (address: string): FailureText => ({
  message: `The SSH server of ${address} sends a banner that is too long, more than 35,000 bytes.`,
  hint: "Shorten or remove the Banner in the sshd_config of its image, or choose another image.",
  transient: false,
});

const tryAgain =
  "Try again. If it comes again, the machine is overloaded or about to end: its console output may say more.";

/** For a connection that was open and then lost. */
export function connectionLost(target: Target, error: Error | undefined): ClusterError {
  const reason = error === undefined ? "closed by the other side" : reasonOf(error);
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
  return new ClusterError("connection-failed", `The connection to ${addressOf(target)} is closed.`, {
    facts: factsOf(target),
  });
}

/** For an open connection on which the node refused a channel for a command. */
export function channelRefused(target: Target, error: Error): ClusterError {
  const message = `${addressOf(target)} didn't take a command: ${error.message}.`;
  return new ClusterError("connection-failed", message, {
    hint: tryAgain,
    transient: true,
    facts: factsOf(target),
    cause: error,
  });
}

export function hostKeyChanged(target: Target, accepted: readonly Uint8Array[], seen: Uint8Array): ClusterError {
  const expected = accepted.map(fingerprint).join(" or ");
  const message = `${addressOf(target)} showed another host key than the pinned one: expected ${expected}, seen ${fingerprint(seen)}.`;
  return new ClusterError("host-key-changed", message, {
    hint: "Either another machine has this address now, or somebody listens in. Nothing was sent. Create the cluster again if its machines have ended.",
    facts: { ...factsOf(target), expected, seen: fingerprint(seen) },
  });
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  EPIPE: "connection reset",
  ETIMEDOUT: "no answer",
  EHOSTUNREACH: "no route to it",
  ENETUNREACH: "no route to its network",
  ENOTFOUND: "its name is not known",
  EAI_AGAIN: "its name can't be looked up now",
  "Keepalive timeout": "it doesn't answer any more",
  "Connection lost before handshake": "connection closed before its SSH server answered",
};

const reasonOf = (error: Ssh2Error): string => reasons[String(error.code)] ?? reasons[error.message] ?? error.message;
