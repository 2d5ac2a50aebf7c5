import { errorCode } from "./files/private-file.ts";

export interface NetworkFailure {
  readonly code: string;
  /** A clause that begins in lower case. It never contains the URL. */
  readonly reason: string;
  readonly transient: boolean;
  /** Whether the two sides couldn't agree on a protected connection. */
  readonly isTls: boolean;
}

/**
 * Explains why a request got no answer, or an answer that broke off. Reads only the error's code: the runtimes' own
 * messages contain the whole URL, secrets included, and advice for programmers.
 */
export function networkFailure(error: unknown): NetworkFailure {
  if (error instanceof DOMException && error.name === "TimeoutError")
    return { code: "ETIMEDOUT", ...reasons.ETIMEDOUT, isTls: false };
  const code = errorCode(error) ?? "no code";
  const known: Reason | undefined = Object.entries(reasons).find(([name]) => name === code)?.[1];
  if (known !== undefined) return { code, ...known, isTls: false };
  const tls = tlsReason(code);
  return { code, ...(tls ?? { reason: "the request failed", transient: true }), isTls: tls !== undefined };
}

interface Reason {
  readonly reason: string;
  readonly transient: boolean;
}

const reasons = {
  ENOTFOUND: { reason: "the host name is unknown", transient: false },
  EAI_AGAIN: { reason: "the host name lookup failed", transient: true },
  ECONNREFUSED: { reason: "the connection was refused", transient: true },
  ERR_PROXY_TUNNEL: { reason: "the proxy did not forward the connection", transient: false },
  ECONNRESET: { reason: "the connection was lost", transient: true },
  EPIPE: { reason: "the connection was lost", transient: true },
  ETIMEDOUT: { reason: "the host does not answer", transient: true },
  EHOSTUNREACH: { reason: "the host is unreachable", transient: true },
  Malformed_HTTP_Response: { reason: "the server does not speak HTTP", transient: true },
  TooManyRedirects: { reason: "the server redirects in a circle", transient: true },
  EFBIG: { reason: "the answer is too long", transient: false },
  ENETUNREACH: { reason: "the network is unreachable", transient: true },
} as const satisfies Readonly<Record<string, Reason>>;

/** OpenSSL's names for certificate problems, and the protocol error of a server that doesn't speak TLS. */
function tlsReason(code: string): Reason | undefined {
  if (code === "EPROTO" || code.startsWith("ERR_SSL_")) return { reason: "the TLS handshake failed", transient: false };
  return /CERT|SIGNATURE|TLS|SSL/.test(code)
    ? { reason: "the server's certificate is not trusted", transient: false }
    : undefined;
}
