import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { messageOf } from "../../errors.ts";
import type { NodeRecord } from "../../model/cluster-record.ts";
import { errorCode } from "../../system/files/private-file.ts";
import { outsideLine } from "../../system/printable.ts";

/** How to connect to a cluster's web servers. */
export interface WebAccess {
  readonly isTlsEnabled: boolean;
  /** The cluster's own certificate authority (PEM); present if TLS is enabled. */
  readonly certificateAuthority: string | undefined;
}

export interface WebQuestion {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type WebAnswer =
  | { readonly status: number; readonly body: string; readonly problem?: undefined }
  | { readonly problem: string; readonly status?: undefined };

const limitMs = 15_000;
const mostBytes = 16_000_000;

/**
 * Queries a master's web server, without a proxy, because SSH uses none either. Its certificate must come from the cluster's authority and contain
 * the node's address as seen from here or, as the platforms issue it, its private address. If there is no answer, resolves with the reason.
 */
export async function askWeb(
  node: NodeRecord,
  access: WebAccess,
  question: WebQuestion,
  signal: AbortSignal,
): Promise<WebAnswer> {
  const { promise, resolve } = Promise.withResolvers<WebAnswer>();
  const options = {
    host: node.web.host,
    path: question.path,
    method: question.method,
    headers: { ...question.headers, ...(question.body && { "content-length": Buffer.byteLength(question.body) }) },
    agent: false as const,
    signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
  };
  const request = access.isTlsEnabled
    ? httpsRequest({ ...options, port: node.web.httpsPort, ...tlsOptions(node, access) })
    : httpRequest({ ...options, port: node.web.httpPort });
  const fail = (error: unknown): void => resolve({ problem: problemOf(error) });
  request.on("error", fail);
  request.on("response", (response) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > mostBytes) request.destroy(new Error("its answer is too long"));
    });
    response.on("error", fail);
    response.on("aborted", () => fail(new Error("the answer is incomplete")));
    response.on("end", () =>
      resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
    );
  });
  request.end(question.body);
  const answer = await promise;
  signal.throwIfAborted();
  return answer;
}

function tlsOptions(node: NodeRecord, access: WebAccess): Pick<ConnectionOptions, "ca" | "checkServerIdentity"> {
  return {
    ...(access.certificateAuthority !== undefined && { ca: access.certificateAuthority }),
    checkServerIdentity: (host, certificate) => {
      const problem = checkServerIdentity(host, certificate);
      if (problem === undefined || node.privateAddress === undefined) return problem;
      return checkServerIdentity(node.privateAddress, certificate);
    },
  };
}

const problems: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refuses the connection",
  ECONNRESET: "it closed the connection",
  ETIMEDOUT: "no answer in time",
  ABORT_ERR: "no answer in time",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for a different address",
};

function problemOf(error: unknown): string {
  const code = errorCode(error);
  const text = outsideLine(messageOf(error));
  return problems[code ?? ""] ?? (code === undefined ? text : `${text} (${code})`);
}
