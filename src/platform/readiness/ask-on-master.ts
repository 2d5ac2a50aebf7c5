import type { NodeRecord } from "../../model/cluster-record.ts";
import { ClusterError, messageOf } from "../../errors.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { Layout } from "../layout.ts";
import type { WebAnswer } from "./ask-web.ts";

export interface SuperuserQuestion {
  readonly layout: Layout;
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

/**
 * Prints `login STATUS` and, after a login that returned a token, `agents STATUS` and the answer's body. A status of 000 means that there was no
 * answer. The shell reads the whole text before anything runs. Only builtins and stdin carry password and token.
 */
export const superuserScript = ({ layout, loginBody }: SuperuserQuestion): string => `
umask 077
LC_ALL=C
export LC_ALL
ask() {
  curl -sS --noproxy '*' --connect-timeout 5 --max-time 15 --include --config - 2>/dev/null | head -c ${mostBytes} | tr -d '\\000'
}

# print_status NAME ANSWER
print_status() {
  status=$(printf '%s\\n' "$2" | sed -n '1s,^HTTP/[0-9.]* \\([0-9][0-9][0-9]\\).*,\\1,p')
  echo "$1 \${status:-000}"
}

main() {
  answer=$(ask <<'CLUSTER_E2E_END'
url = "http://127.0.0.1${layout.loginPath}"
header = "Content-Type: application/json"
header = "Expect:"
data-binary = "${loginBody.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"
CLUSTER_E2E_END
  )
  print_status login "$answer"
  [ "$status" = 200 ] || return 0
  token=$(printf '%s' "$answer" | tr -d '\\r\\n' | sed -n 's,.*"token"[[:space:]]*:[[:space:]]*"\\([A-Za-z0-9._~+/=-]*\\)".*,\\1,p')
  [ -n "$token" ] || return 0
  answer=$(ask <<CLUSTER_E2E_END
url = "http://127.0.0.1${layout.agentsRegistered.path}"
header = "Authorization: token=$token"
CLUSTER_E2E_END
  )
  print_status agents "$answer"
  printf '%s\\n' "$answer" | sed '1,/^\\r*$/d'
}
main </dev/null
`;

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
