import { OwnError, messageOf } from "../errors.ts";
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
  if (error instanceof ProxiedFailure) return proxiedFailure(error);
  if (error instanceof DOMException && error.name === "TimeoutError")
    return { code: "ETIMEDOUT", ...reasons.ETIMEDOUT, isTls: false };
  const code = errorCode(error) ?? "no code";
  const status =
    code === "ERR_PROXY_TUNNEL" && error instanceof Error && "status" in error
      ? Number(error.status)
      : 0;
  if (status >= 400 && status < 500) return { ...proxyRefusal(status), isTls: false };
  if (status >= 500)
    return {
      code,
      ...reasons.ERR_PROXY_TUNNEL,
      reason: `${reasons.ERR_PROXY_TUNNEL.reason} (HTTP ${status})`,
      isTls: false,
    };
  const known: Reason | undefined = Object.entries(reasons).find(([name]) => name === code)?.[1];
  if (known !== undefined) return { code, ...known, isTls: false };
  const tls = tlsReason(code);
  return {
    code,
    ...(tls ?? { reason: "the request failed", transient: true }),
    isTls: tls !== undefined,
  };
}

/**
 * A request that failed although, or because, it went through this proxy. The message is the proxy,
 * as people may see it.
 */
export class ProxiedFailure extends OwnError {
  override readonly name = "ProxiedFailure";
}

function proxiedFailure(error: ProxiedFailure): NetworkFailure {
  const failure = networkFailure(error.cause);
  const proxy = `the proxy ${messageOf(error)}`;
  const reason = connectionFailures.has(failure.code)
    ? `${proxy} cannot be reached: ${failure.reason}`
    : `${failure.reason}, through ${proxy}`;
  return { ...failure, reason };
}

/** The code of a failure that the proxy's own settings cause, and not the host behind it. */
export const proxyRefused = "ERR_PROXY_REFUSED";

/** Failures to connect. Where a proxy is used, it is the only host that this program itself connects to. */
export const connectionFailures: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** What a proxy's answer to a request, of the kind 4xx, means. */
export function proxyRefusal(status: number): Omit<NetworkFailure, "isTls"> {
  const reason =
    status === 407
      ? "the proxy requires a login, as user:password@ before the host in the proxy's URL"
      : `the proxy does not allow the connection (HTTP ${status})`;
  return { code: proxyRefused, reason, transient: false };
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
  UnsupportedProxyProtocol: {
    reason: "the proxy's URL must begin with http:// or https://",
    transient: false,
  },
  Malformed_HTTP_Response: { reason: "the server does not speak HTTP", transient: true },
  TooManyRedirects: { reason: "the server redirects in a circle", transient: true },
  EFBIG: { reason: "the answer is too long", transient: false },
  ENETUNREACH: { reason: "the network is unreachable", transient: true },
} as const satisfies Readonly<Record<string, Reason>>;

/** OpenSSL's names for certificate problems, and the protocol error of a server that doesn't speak TLS. */
function tlsReason(code: string): Reason | undefined {
  if (code === "EPROTO" || code.startsWith("ERR_SSL_"))
    return { reason: "the TLS handshake failed", transient: false };
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return { reason: "the server's certificate is for another host name", transient: false };
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return {
      reason:
        "the server's certificate is not valid at this time, or this computer's clock is wrong",
      transient: false,
    };
  return /CERT|SIGNATURE|TLS|SSL/.test(code)
    ? { reason: "the server's certificate is not trusted", transient: false }
    : undefined;
}
