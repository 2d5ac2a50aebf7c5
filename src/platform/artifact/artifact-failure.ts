import type { ErrorDetail } from "../../errors.ts";
import { ClusterError } from "../../errors.ts";
import { networkFailure } from "../../system/network-failure.ts";

/** `reason` is a sentence that begins in lower case. It must contain nothing of the URL except `shown`. */
export function artifactUnreachable(shown: string, reason: string, detail: ErrorDetail): ClusterError {
  return new ClusterError("artifact-unreachable", `Cannot read the artifact ${shown}: ${reason}`, {
    hint: "Check ARTIFACT_URL, or download the file yourself and pass its path.",
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

/** For a request without an answer, or an answer that broke off. */
export function requestFailure(shown: string, error: unknown): ClusterError {
  const { code, reason, transient, isTls } = networkFailure(error);
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

const signedHint =
  "Check the user name or the token in the URL. If it is a signed URL that has expired, get a new one.";
const refusals: Readonly<Record<number, Refusal>> = {
  401: { reason: "the server requires a login", hint: signedHint },
  403: { reason: "the server denies access", hint: signedHint },
  404: { reason: "the server has no such file", hint: "Check ARTIFACT_URL." },
  410: { reason: "the server no longer has the file", hint: "Check ARTIFACT_URL." },
};

const networkHint = "Check the address, the network and the proxy variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.";
const tlsHint =
  "For a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file; or download the artifact yourself and pass its path.";
