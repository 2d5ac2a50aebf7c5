import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { messageOf, mayPass } from "../../errors.ts";
import type { NodeRecord } from "../../model/cluster-record.ts";
import { errorCode } from "../../system/files/private-file.ts";
import { outsideLine } from "../../system/printable.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { PortAddress } from "../../ssh/connection/connection.ts";
import { forwardPort } from "../../ssh/forward-port.ts";
import { shellText } from "../../ssh/shell-text.ts";
import type { ReleaseParts } from "../layouts/layout.ts";
import superuserFile from "./superuser.sh" with { type: "text" };

/** How to connect to a cluster's web servers. */
export interface WebAccess {
  readonly connections: Pick<ConnectionPool, "connect">;
  readonly isTlsEnabled: boolean;
  /** The cluster's own certificate authority (PEM); present if TLS is enabled. */
  readonly certificateAuthority: string | undefined;
}

interface WebQuestion {
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
 * Queries a master's web server, without a proxy; through SSH where the node's address leads nowhere from here. Its
 * certificate must come from the cluster's authority and contain the node's public or private
 * address. If there is no answer, resolves with the reason.
 */
export async function askWeb(
  node: NodeRecord,
  access: WebAccess,
  question: WebQuestion,
  signal: AbortSignal,
): Promise<WebAnswer> {
  const { httpPort, httpsPort } = node.web;
  const port = access.isTlsEnabled ? httpsPort : httpPort;
  if (node.ssh.through === undefined)
    return await askAt({ host: node.web.host, port }, { node, access, question }, signal);
  const failure = { reason: "" };
  await using forward = await forwardPort(
    {
      host: node.web.host,
      port,
      localPort: 0,
      connect: async (inner) => access.connections.connect(node, inner),
      onFailure: (reason) => void (failure.reason = reason),
    },
    signal,
  );
  const here = { host: "127.0.0.1", port: forward.localPort };
  const answer = await askAt(here, { node, access, question }, signal);
  return failure.reason === "" ? answer : { problem: failure.reason };
}

interface Asked {
  readonly node: NodeRecord;
  readonly access: WebAccess;
  readonly question: WebQuestion;
}

async function askAt(
  { host, port }: PortAddress,
  { node, access, question }: Asked,
  signal: AbortSignal,
): Promise<WebAnswer> {
  const { promise, resolve } = Promise.withResolvers<WebAnswer>();
  const options = {
    host,
    port,
    path: question.path,
    method: question.method,
    headers: {
      ...question.headers,
      ...(host !== node.web.host && { host: node.web.host }),
      ...(question.body && { "content-length": Buffer.byteLength(question.body) }),
    },
    agent: false as const,
    signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
  };
  const request = access.isTlsEnabled
    ? httpsRequest({ ...options, ...tlsOptions(node, access) })
    : httpRequest(options);
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

function tlsOptions(
  node: NodeRecord,
  access: WebAccess,
): Pick<ConnectionOptions, "ca" | "checkServerIdentity"> {
  return {
    ...(access.certificateAuthority !== undefined && { ca: access.certificateAuthority }),
    checkServerIdentity: (_, certificate) => {
      const problem = checkServerIdentity(node.web.host, certificate);
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

export interface SuperuserQuestion {
  readonly release: ReleaseParts;
  /** JSON that contains the password. */
  readonly loginBody: string;
}

export interface SuperuserAnswers {
  /** The answer to the login, without the token. */
  readonly login: WebAnswer;
  /** The master's list of agents; undefined if the login returned no token. */
  readonly agents: WebAnswer | undefined;
}

const superuserLimitMs = 45_000;
/** Less than the output that a command's result keeps. */
const mostSuperuserBytes = 3_000_000;

/**
 * Logs in as the superuser and queries the agents on the master itself, over SSH, because without
 * TLS password and token would cross the network in clear text. The password travels by stdin; the
 * token never leaves the node.
 */
export async function askOnMaster(
  master: NodeRecord,
  question: SuperuserQuestion,
  connections: Pick<ConnectionPool, "connect">,
  signal: AbortSignal,
): Promise<SuperuserAnswers> {
  const failed = (problem: string): SuperuserAnswers => ({ login: { problem }, agents: undefined });
  try {
    const connection = await connections.connect(master, signal);
    const result = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-superuser"],
        stdin: superuserScript(question),
        limitMs: superuserLimitMs,
        task: "logging in as the superuser",
      },
      signal,
    );
    return parseSuperuserAnswers(result.stdout) ?? failed("no answer on the master itself");
  } catch (error) {
    signal.throwIfAborted();
    if (mayPass(error)) return failed(messageOf(error));
    throw error;
  }
}

export const superuserScript = ({ release, loginBody }: SuperuserQuestion): string =>
  shellText(superuserFile, {
    LOGIN_PATH: release.loginPath,
    LOGIN_BODY: loginBody.replaceAll("\\", "\\\\").replaceAll('"', '\\"'),
    AGENTS_PATH: release.agentsRegistered.path,
    MOST_BYTES: mostSuperuserBytes,
  });

/** Parses the output of `superuserScript`; undefined if it has any other form. */
export function parseSuperuserAnswers(stdout: string): SuperuserAnswers | undefined {
  const match = /^login (\d{3})\n(?:agents (\d{3})\n([^]*))?$/.exec(stdout);
  if (match === null) return undefined;
  const [, login = "", agents, body = ""] = match;
  return {
    login: answerOf(login, ""),
    agents: agents === undefined ? undefined : answerOf(agents, body),
  };
}

function answerOf(status: string, body: string): WebAnswer {
  if (status === "000") return { problem: "no answer on the master itself" };
  if (body.length >= mostSuperuserBytes - 1000) return { problem: "its answer is too long" };
  return { status: Number(status), body };
}
