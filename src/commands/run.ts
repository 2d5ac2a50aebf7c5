import { defineCommand } from "../cli/command.ts";
import type { Context } from "../cli/context.ts";
import { flag, option, restArgument } from "../cli/options/option.ts";
import { verbose } from "../cli/options/shared-options.ts";
import { anyText, text, value } from "../cli/options/value-types.ts";
import { ClusterError } from "../errors.ts";
import type { Driver } from "./driver.ts";
import { checkout, clusterId, node } from "./options.ts";
import { readVariable, readVariableFile, type Variable } from "./read-variable.ts";

const loginOptions = {
  loginUname: option(text, { flag: "--login-uname", summary: "Value of CLUSTER_LOGIN_UNAME on the node" }),
  loginPw: option(anyText, {
    flag: "--login-pw",
    summary: 'Value of CLUSTER_LOGIN_PW on the node; "-" (recommended) reads a line from stdin or asks on a terminal',
    secret: true,
  }),
};

const variableOptions = {
  environment: option(value(readVariable), {
    flag: "--env",
    placeholder: "<KEY>=<VALUE>",
    summary: "Environment variable for the command; wins over all others",
    repeatable: true,
  }),
  environmentFile: option(value(readVariableFile, "file"), {
    flag: "--env-file",
    placeholder: "<file>",
    summary: "File with a <KEY>=<VALUE> on each line, for the command; for secrets",
    repeatable: true,
  }),
};

export const runCommand = (driver: Driver) =>
  defineCommand({
    name: "run",
    summary: "Runs a command on a node",
    description:
      "Runs any command on a node, by default on the first master that answers, as root and with the environment in which a test runner can be started. Terminal, stdin, signals and exit status pass through. Options of this program end at the first word of NODE_ARGS.\n\nOne word is a line for the node's shell: wrap the whole command in double quotes to use special characters such as single quotes. Several words are passed on exactly as they are.\n\nOther users of this machine can see the words of a command line, and a crash prints them: give secrets with --env-file FILE and --login-pw -.\n\nA failure of this program from connecting on ends with 255, as ssh's own do.",
    positionals: { words: restArgument({ name: "NODE_ARGS", summary: "The command and its arguments" }) },
    options: {
      clusterId,
      ...loginOptions,
      syncDir: option(checkout, {
        flag: "--sync-dir",
        summary: "Checkout that is synced to the masters first, as `sync` does",
      }),
      noTestEnv: flag({
        flag: "--no-test-env",
        summary: "Set no environment variables but those named here, and run in the home directory",
      }),
      ...variableOptions,
      ...driver.placeOptions,
      node: node(driver.machineId),
      verbose,
    },
    examples: [
      { words: "run bash", summary: "A shell on a master" },
      { words: "run --node agent_0 journalctl -n 20", summary: "A command on an agent" },
      { words: "run --env-file secrets.env --login-pw - pytest", summary: "With secrets that nobody else sees" },
      { words: "run \"pytest -k 'not slow' | tee log\"", summary: "A line for the node's shell" },
    ],
    run: async (input, context) => {
      const { findCluster } = await import("../cluster/find-cluster.ts");
      const { runOnNode } = await import("../cluster/run-on-node.ts");
      const backend = await sparingCommandStatus(context, driver.open(input, context, context.signal));
      const password = await loginPassword(input.loginPw, context);
      const cluster = await sparingCommandStatus(context, findCluster(backend, input.clusterId, context.signal));
      const request = {
        words: input.words,
        node: input.node,
        login: { name: input.loginUname, password },
        variables: variablesOf([...input.environmentFile.flat(), ...input.environment]),
        hasTestEnvironment: !input.noTestEnv,
        missingFolderHint:
          "It comes with the platform: the wait command tells when that is installed; --no-test-env runs without it.",
        checkout: input.syncDir,
        isTerminal: context.isTerminal.stdin && context.isTerminal.stdout,
      };
      const onConnecting = (): void => context.failuresExitWith(255);
      return runOnNode(cluster, request, { ...context, onConnecting }, context.signal);
    },
  });

/** Failures that would exit with 1 or 4, such as a failed cloud request, exit with 255, because the command itself may exit with 1 or 4. */
async function sparingCommandStatus<Result>(context: Context, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ClusterError && (error.exitCode === 1 || error.exitCode === 4)) context.failuresExitWith(255);
    throw error;
  }
}

/** If a name is repeated, the last value wins. */
function variablesOf(variables: readonly Variable[]): Readonly<Record<string, string>> {
  return Object.fromEntries(variables.map(({ name, contents }) => [name, contents]));
}

async function loginPassword(given: string | undefined, { stdin, signal }: Context): Promise<string | undefined> {
  return given === "-" ? stdin.readSecret("Login password: ", signal) : given;
}
