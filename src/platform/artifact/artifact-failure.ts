import type { ErrorDetail } from "../../errors.ts";
import { ClusterError } from "../../errors.ts";
import { errorCode } from "../../system/error-code.ts";

/** `reason` is a sentence that begins in lower case. It must contain nothing of the URL except `shown`. */
export function artifactUnreachable(shown: string, reason: string, detail: ErrorDetail): ClusterError {
  return new ClusterError("artifact-unreachable", `The artifact ${shown} cannot be read: ${reason}`, {
    hint: "Check ARTIFACT_URL, or download the file yourself and give its path.",
    ...detail,
    facts: { artifact: shown, ...detail.facts },
  });
}

/** For an answer whose status isn't a success. */
export function answerFailure(shown: string, status: number): ClusterError {
  const { reason, hint } = refusals[status] ?? {
    reason: status >= 500 ? "the server failed" : "the server answered",
  };
  return artifactUnreachable(shown, `${reason} (HTTP ${status}).`, {
    transient: status >= 500 || status === 408 || status === 425 || status === 429,
    facts: { status },
    ...(hint === undefined ? {} : { hint }),
  });
}

/**
 * For a request without an answer, or an answer that broke off. It keeps only the error's code: runtimes put the whole URL, secrets included, into
 * the message and the fields.
 */
export function requestFailure(shown: string, error: unknown): ClusterError {
  const code = errorCode(error) ?? "no code";
  const { reason, transient } = failures[code] ?? tlsFailure(code) ?? { reason: "the request failed", transient: true };
  const isTls = tlsFailure(code) !== undefined;
  return artifactUnreachable(shown, `${reason} (${code}).`, {
    transient,
    facts: { code },
    hint: isTls ? tlsHint : networkHint,
  });
}

interface Refusal {
  readonly reason: string;
  readonly hint?: string;
}

const signedHint = "Check its user part or token; a signed URL may have expired: get a new one.";
const refusals: Readonly<Record<number, Refusal>> = {
  401: { reason: "the server wants a login", hint: signedHint },
  403: { reason: "the server refuses access", hint: signedHint },
  404: { reason: "there is nothing at that address", hint: "Check ARTIFACT_URL." },
  410: { reason: "it is gone from that address", hint: "Check ARTIFACT_URL." },
};

interface Failure {
  readonly reason: string;
  readonly transient: boolean;
}

const failures: Readonly<Record<string, Failure>> = {
  ENOTFOUND: { reason: "its host name is not known", transient: false },
  EAI_AGAIN: { reason: "its host name could not be looked up", transient: true },
  ECONNREFUSED: { reason: "the connection is refused", transient: true },
  ERR_PROXY_TUNNEL: { reason: "the proxy does not pass the connection on", transient: false },
  ECONNRESET: { reason: "the connection was cut off", transient: true },
  ETIMEDOUT: { reason: "its host does not answer", transient: true },
  EHOSTUNREACH: { reason: "its host cannot be reached", transient: true },
  Malformed_HTTP_Response: { reason: "what answers there speaks no HTTP", transient: true },
  ENETUNREACH: { reason: "the network is unreachable", transient: true },
};

const networkHint = "Check the address, and what stands between: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.";
const tlsHint =
  "For a certificate authority of your own set NODE_EXTRA_CA_CERTS to its file; or download the artifact yourself and give its path.";

/** OpenSSL's names for certificate problems, and the protocol error of a server that doesn't speak TLS. */
function tlsFailure(code: string): Failure | undefined {
  if (code === "EPROTO" || code.startsWith("ERR_SSL_")) return { reason: "the TLS handshake failed", transient: false };
  return /CERT|SIGNATURE|TLS|SSL/.test(code)
    ? { reason: "the server's certificate is not trusted", transient: false }
    : undefined;
}
