import { numbered } from "../../system/amounts.ts";
import { X509Certificate } from "node:crypto";
import { ClusterError, mayPass } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type NodeRecord, type Variant, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import * as read from "../../model/reader.ts";
import { parseJson } from "../../system/files/read-text.ts";
import { type Clock, passedMs } from "../../system/runtime.ts";
import type { Layout, ReleaseParts } from "../layouts/layout.ts";
import {
  type SuperuserAnswers,
  type SuperuserQuestion,
  askOnMaster,
  type WebAccess,
  type WebAnswer,
  askWeb,
} from "./ask-web.ts";

export interface Superuser {
  readonly username: string;
  /** Secret. */
  readonly password: string;
}

export interface MastersCheck {
  readonly variant: Variant;
  readonly layout: Layout;
  readonly isTlsEnabled: boolean;
  readonly masters: readonly NodeRecord[];
  /** Agents and public agents together. */
  readonly agentCount: number;
  /** Undefined: try no login. */
  readonly login: Superuser | undefined;
  readonly connections: Pick<ConnectionPool, "connect">;
}

/** A condition that isn't met yet. */
export interface Wait {
  /** A node's reference. */
  readonly subject: string;
  readonly reason: string;
}

/**
 * Resolves with the conditions that do not hold yet: every master must answer, the login must work,
 * and all agents must be registered.
 */
export type MastersChecker = (
  request: MastersCheck,
  signal: AbortSignal,
) => Promise<readonly Wait[]>;

const mastersAtOnce = 9;

/** Remembers the cluster's certificate authority between checks, and since when the cluster has refused the login. */
export function createMastersChecker(clock: Clock): MastersChecker {
  const known: { certificateAuthority: string | undefined } = { certificateAuthority: undefined };
  const isFinalRefusal = createRefusalJudge(clock);
  return async (request, signal) => {
    const [first] = request.masters;
    if (first === undefined) return [];
    if (request.isTlsEnabled)
      known.certificateAuthority ??= await readAuthority(first, request, signal);
    if (request.isTlsEnabled && known.certificateAuthority === undefined)
      return [waitFor(first, "its certificate authority is not readable yet")];
    const access = {
      connections: request.connections,
      isTlsEnabled: request.isTlsEnabled,
      certificateAuthority: known.certificateAuthority,
    };
    const silent = await silentMasters(request, access, signal);
    return silent.length > 0
      ? silent
      : checkAsSuperuser(first, { ...request, isFinalRefusal }, access, signal);
  };
}

const waitFor = (node: NodeRecord, reason: string): Wait => ({
  subject: nodeReference(node),
  reason,
});

/** Reads the authority over SSH, whose host key is pinned, because TLS can't be verified yet. */
async function readAuthority(
  node: NodeRecord,
  { layout, connections }: MastersCheck,
  signal: AbortSignal,
): Promise<string | undefined> {
  const authority = layout.web?.authority;
  if (authority === undefined) return undefined;
  const isFile = "file" in authority;
  const argv = isFile
    ? ["head", "-c", String(mostAuthorityBytes), authority.file]
    : authorityRequest(authority.path);
  try {
    const connection = await connections.connect(node, signal);
    const { status, stdout } = await connection.run(
      { argv, sudo: isFile, limitMs: 30_000 },
      signal,
    );
    return status === 0 && areCertificates(stdout) ? stdout : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (mayPass(error)) return undefined;
    throw error;
  }
}

const mostAuthorityBytes = 256 * 1024;

const authorityRequest = (path: string): readonly [string, ...string[]] => [
  "curl",
  "-fksS",
  "--noproxy",
  "*",
  "--max-time",
  "10",
  `https://127.0.0.1${path}`,
];

/** A web server that has just started may send a page, or a part of the file. */
function areCertificates(text: string): boolean {
  const [, ...parts] = text.split("-----BEGIN CERTIFICATE-----");
  return (
    parts.length > 0 && parts.every((part) => isCertificate(`-----BEGIN CERTIFICATE-----${part}`))
  );
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0;
  } catch {
    return false;
  }
}

async function silentMasters(
  { masters, layout }: MastersCheck,
  access: WebAccess,
  signal: AbortSignal,
): Promise<readonly Wait[]> {
  const ask = async (node: NodeRecord): Promise<readonly Wait[]> => {
    const answer = await askWeb(
      node,
      access,
      { method: "GET", path: layout.web?.endpoint?.path ?? "/" },
      signal,
    );
    const protocol = access.isTlsEnabled ? "HTTPS" : "HTTP";
    if (answer.problem !== undefined)
      return [waitFor(node, `${protocol} at ${node.web.host}: ${answer.problem}`)];
    return answer.status < 500
      ? []
      : [waitFor(node, `${protocol} at ${node.web.host}: status ${answer.status}`)];
  };
  return (await mapConcurrently(masters, mastersAtOnce, ask, signal)).flat();
}

async function checkAsSuperuser(
  master: NodeRecord,
  request: MastersCheck & { readonly isFinalRefusal: RefusalJudge },
  access: WebAccess,
  signal: AbortSignal,
): Promise<readonly Wait[]> {
  const { variant, login, isFinalRefusal } = request;
  const { release } = request.layout;
  if (release === undefined) return [];
  const asksAgents = release.agentsRegistered.variants.includes(variant);
  const question = { method: "GET", path: release.agentsRegistered.path } as const;
  if (login === undefined)
    return asksAgents
      ? agentWaits(master, { ...request, release }, await askWeb(master, access, question, signal))
      : [];
  const body = JSON.stringify({ uid: login.username, password: login.password });
  const answers = access.isTlsEnabled
    ? await askOverTls(master, { release, loginBody: body }, access, signal)
    : await askOnMaster(master, { release, loginBody: body }, request.connections, signal);
  const wait = loginWait(master, login, answers, isFinalRefusal);
  if (wait !== undefined) return [waitFor(master, wait)];
  return asksAgents && answers.agents !== undefined
    ? agentWaits(master, { ...request, release }, answers.agents)
    : [];
}

function agentWaits(
  master: NodeRecord,
  { release, agentCount }: Pick<MastersCheck, "agentCount"> & { readonly release: ReleaseParts },
  answer: WebAnswer,
): readonly Wait[] {
  if (answer.problem !== undefined || answer.status !== 200)
    return [
      waitFor(
        master,
        `it does not list the agents: ${answer.problem ?? `status ${answer.status}`}`,
      ),
    ];
  const count = release.agentsRegistered.count(parseJson(answer.body));
  return count >= agentCount
    ? []
    : [waitFor(master, `${count} of ${numbered(agentCount, "agent")} registered`)];
}

/**
 * Gets the outcome of each login. Returns whether all of them have been refused for so long that
 * the refusal is final: a platform that has just started may refuse the right password for a while.
 */
type RefusalJudge = (isRefused: boolean) => boolean;

const refusalGraceMs = 30_000;

function createRefusalJudge(clock: Clock): RefusalJudge {
  const first: { refusedAtMs: number | undefined } = { refusedAtMs: undefined };
  return (isRefused) => {
    first.refusedAtMs = isRefused ? (first.refusedAtMs ?? passedMs(clock)) : undefined;
    return first.refusedAtMs !== undefined && passedMs(clock) - first.refusedAtMs >= refusalGraceMs;
  };
}

/**
 * Throws `login-refused` once the platform has refused the name or password for 30 s; any other
 * failure may be transient.
 */
function loginWait(
  master: NodeRecord,
  { username }: Superuser,
  { login, agents }: SuperuserAnswers,
  isFinalRefusal: RefusalJudge,
): string | undefined {
  if (login.problem !== undefined) return `login: ${login.problem}`;
  const isRefused = login.status === 401;
  if (isFinalRefusal(isRefused)) throw loginRefused(master, outside(username));
  if (isRefused) return "login: the superuser was refused";
  return agents === undefined ? `login: status ${login.status}` : undefined;
}

const loginRefused = (master: NodeRecord, username: string): ClusterError =>
  new ClusterError(
    "login-refused",
    `The cluster refused the login of the superuser "${username}" with this password.`,
    {
      hint: `Pass the ${optionName("superuserUsername")} and the ${optionName("superuserPassword")} of the cluster's configuration.`,
      facts: { node: nodeReference(master), username },
    },
  );

async function askOverTls(
  master: NodeRecord,
  { release, loginBody }: SuperuserQuestion,
  access: WebAccess,
  signal: AbortSignal,
): Promise<SuperuserAnswers> {
  const json = { "content-type": "application/json" };
  const posted = {
    method: "POST",
    path: release.loginPath,
    headers: json,
    body: loginBody,
  } as const;
  const login = await askWeb(master, access, posted, signal);
  const token = login.status === 200 ? tokenIn(parseJson(login.body)) : undefined;
  if (token === undefined) return { login, agents: undefined };
  const headers = { authorization: `token=${token}` };
  const question = { method: "GET", path: release.agentsRegistered.path, headers } as const;
  return { login, agents: await askWeb(master, access, question, signal) };
}

const tokenIn = read.field("token", read.string);
