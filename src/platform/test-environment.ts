import type { ClusterRecord, NodeRecord, Role } from "../model/cluster-record.ts";
import type { Layout, ReleaseParts } from "./layouts/layout.ts";

/** The values of `--login-uname` and `--login-pw`, each set only if given. */
export interface Login {
  readonly name: string | undefined;
  readonly password: string | undefined;
}

interface TestEnvironmentInput {
  readonly cluster: Pick<ClusterRecord, "nodes">;
  /** The node on which the command runs; it has a private address. */
  readonly target: Pick<NodeRecord, "privateAddress">;
  readonly layout: Layout;
  /** The folder in which the command runs; default: the layout's first one. */
  readonly folder?: string;
  readonly login: Login;
}

/**
 * Returns the environment that a test runner finds on the target. The layout provides the variables' prefix, and the
 * cluster's nodes most of their values.
 */
export function testEnvironment(input: TestEnvironmentInput) {
  const { layout, login } = input;
  return {
    /** These include the secret `LOGIN_PW`, so they travel by stdin, never in an argument list. */
    variables: {
      ...loginVariables(login, layout),
      ...(layout.release && releaseVariables(input, layout.release)),
    },
    workingDirectory: input.folder ?? layout.testsFolders[0],
    /** A shell file to source before the command runs. */
    environmentFile: layout.environmentFile,
  };
}

/** Other platforms write such variables into the environment file. */
function releaseVariables(
  { cluster, target, layout }: TestEnvironmentInput,
  release: ReleaseParts,
): Readonly<Record<string, string>> {
  const masters = addresses(cluster, "master");
  const agents = addresses(cluster, "agent");
  const publicAgents = addresses(cluster, "public_agent");
  const prefixed = {
    DNS_ADDRESS: `http://${target.privateAddress ?? ""}`,
    NUM_MASTERS: String(masters.length),
    NUM_AGENTS: String(agents.length + publicAgents.length),
  };
  return {
    MASTER_HOSTS: masters.join(","),
    PUBLIC_MASTER_HOSTS: masters.join(","),
    SLAVE_HOSTS: agents.join(","),
    PUBLIC_SLAVE_HOSTS: publicAgents.join(","),
    ...withPrefixes(prefixed, layout),
    ...release.testVariables({
      master: masters.length,
      agent: agents.length,
      public_agent: publicAgents.length,
    }),
  };
}

/** Returns the variables that the user set with `--login-*` alone; they are set under `--no-test-env` too. */
export function loginVariables(login: Login, layout: Layout): Readonly<Record<string, string>> {
  const given = {
    ...(login.name === undefined ? {} : { LOGIN_UNAME: login.name }),
    ...(login.password === undefined ? {} : { LOGIN_PW: login.password }),
  };
  return withPrefixes(given, layout);
}

const withPrefixes = (
  values: Readonly<Record<string, string>>,
  layout: Layout,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    layout.variablePrefixes.flatMap((prefix) =>
      Object.entries(values).map(([name, value]) => [prefix + name, value]),
    ),
  );

/** Returns the addresses of machines that have not ended. */
const addresses = ({ nodes }: Pick<ClusterRecord, "nodes">, role: Role): readonly string[] =>
  nodes
    .filter((node) => node.role === role && (node.state === "starting" || node.state === "running"))
    .flatMap((node) => node.privateAddress ?? []);
