import type { NodeRecord } from "../../model/cluster-record.ts";
import { ClusterError, messageOf } from "../../errors.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { shellText } from "../../ssh/shell-text.ts";
import type { ReleaseParts } from "../layouts/layout.ts";
import type { WebAnswer } from "./ask-web.ts";
import superuserFile from "./superuser.sh" with { type: "text" };

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

const limitMs = 45_000;
/** Less than the part of a command's output that is kept. */
const mostBytes = 3_000_000;

/**
 * Logs in as the superuser and queries the agents on the master itself, over SSH. This is for platforms without TLS, where password and token would
 * otherwise cross the network in clear text. The password travels by stdin; the token never leaves the node.
 */
export async function askOnMaster(
  master: NodeRecord,
  question: SuperuserQuestion,
  connections: ConnectionPool,
  signal: AbortSignal,
): Promise<SuperuserAnswers> {
  const failed = (problem: string): SuperuserAnswers => ({ login: { problem }, agents: undefined });
  try {
    const connection = await connections.connect(master, signal);
    const result = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-superuser"],
        stdin: superuserScript(question),
        limitMs,
        task: "logging in as the superuser",
      },
      signal,
    );
    return parseSuperuserAnswers(result.stdout) ?? failed("no answer on the master itself");
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError && (error.transient || error.id === "deadline-passed"))
      return failed(messageOf(error));
    throw error;
  }
}

export const superuserScript = ({ release, loginBody }: SuperuserQuestion): string =>
  shellText(superuserFile, {
    LOGIN_PATH: release.loginPath,
    LOGIN_BODY: loginBody.replaceAll("\\", "\\\\").replaceAll('"', '\\"'),
    AGENTS_PATH: release.agentsRegistered.path,
    MOST_BYTES: mostBytes,
  });

/** Undefined if the text has any other form. */
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
  if (body.length >= mostBytes - 1000) return { problem: "its answer is too long" };
  return { status: Number(status), body };
}
