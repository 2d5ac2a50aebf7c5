import { defineCommand } from "../cli/command.ts";
import { flag, type Invocation, option, wordsArgument } from "../cli/options/option.ts";
import type { Problems } from "../cli/options/problems.ts";
import { anyText, outputFormat, text, value, verbose } from "../cli/options/value-types.ts";
import type { FetchRequest } from "../cluster/fetch.ts";
import type { BackendKind } from "../backend/contract.ts";
import { scopeOptions } from "./backend-options.ts";
import { checkedValue, checkout, clusterId, nodeNames, nodeSelector } from "./options.ts";
import {
  isSecretName,
  readVariable,
  readVariableFile,
  secretsIn,
  type Variable,
} from "./read-variable.ts";

const variable = {
  ...value(readVariable),
  secretsIn: (given: Variable): readonly string[] =>
    isSecretName(given.name) ? secretsIn([given]) : [],
};

export const sessionOptions = {
  loginUname: option(text, {
    flag: "--login-uname",
    summary: "Value of CLUSTER_LOGIN_UNAME on the node",
  }),
  loginPw: option(anyText, {
    flag: "--login-pw",
    summary:
      'Value of CLUSTER_LOGIN_PW on the node; "-" (recommended) prompts on a terminal or reads a line from stdin',
    secret: true,
  }),
  syncDir: option(checkout, {
    flag: "--sync-dir",
    summary: "Checkout to sync to the masters first, as `sync` does",
  }),
  noTestEnv: flag({
    flag: "--no-test-env",
    summary:
      "Set only the environment variables given by other options, and run in the home directory",
  }),
  environment: option(variable, {
    flag: "--env",
    placeholder: "<KEY>=<VALUE>",
    summary:
      "Environment variable for the command; overrides all others. Its value is masked if the key looks like that of a secret",
    repeatable: true,
  }),
  environmentFile: option(
    { ...value(readVariableFile, "file"), secretsIn },
    {
      flag: "--env-file",
      placeholder: "<file>",
      summary:
        "File with environment variables for the command, all of them secrets; one `<KEY>=<VALUE>` per line",
      repeatable: true,
    },
  ),
  fetch: option(checkedValue(readFetchRequest), {
    flag: "--fetch",
    placeholder: "<remote>:<local>",
    summary:
      "File or folder to copy here after the command, even if it failed; if <local> ends with `/`, into that folder",
    repeatable: true,
  }),
};

export const nodesOption = (kind: BackendKind) =>
  option(nodeSelector(kind.machineId), {
    flag: "--node",
    summary:
      "Node to run on: its public or private IP address, its machine id, or <role>_<number> such as agent_0; or a group: all, masters, agents or public_agents",
    defaultText: "the first master that answers",
    repeatable: true,
    completeWith: nodeNames,
  });

export const runCommand = (kind: BackendKind) =>
  defineCommand({
    name: "run",
    summary: "Run a command on nodes",
    description:
      "Run any command as root on a node, by default on the first master that answers. The command gets the environment that a test runner needs. The terminal, stdin, signals and the exit status are passed through. With --fetch, files are copied from the node after the command, even if it failed. Put the options of this program before NODE_ARGS: everything from the first word of NODE_ARGS on belongs to the command.\n\nSeveral nodes, or a group of nodes, run the command at the same time, 64 at once, without a terminal and with an empty stdin. Each line of output begins with the name of its node, and a file that is fetched goes into a folder of that name. A node that fails doesn't stop the others. The exit status is the highest of all nodes; a node that cannot be reached counts as 255.\n\nA single word is a command line for the node's shell: to use special characters such as single quotes, wrap the whole command in double quotes. Several words are passed on unchanged.\n\nOther users of this machine can see the command line, and a crash prints it: pass secrets with --env-file FILE and --login-pw -.\n\nIf this program itself fails after it has started to connect, or because a node is stopped, it exits with 255, like ssh.",
    positionals: {
      words: wordsArgument("words", {
        name: "NODE_ARGS",
        summary: "The command and its arguments",
      }),
    },
    options: {
      clusterId,
      ...sessionOptions,
      ...scopeOptions(kind),
      node: nodesOption(kind),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "run bash", summary: "Open a shell on a master" },
      { words: "run --node agent_0 journalctl -n 20", summary: "Run a command on an agent" },
      {
        words: "run --env-file secrets.env --login-pw - pytest",
        summary: "Run tests with secrets that no other user can see",
      },
      {
        words: "run --fetch report.xml:results/ pytest --junitxml=report.xml",
        summary: "Run tests and fetch their report",
      },
      {
        words: "run \"pytest -k 'not slow' | tee log\"",
        summary: "Pass a command line to the node's shell",
      },
    ],
    check: ({ fetch = [] }, problems) => checkFetches(fetch, problems),
    run: async (input, context) => {
      const { executeRun } = await import("./execute-run.ts");
      return executeRun(kind, input, context);
    },
  });

export function checkFetches(fetches: readonly FetchRequest[], problems: Problems): void {
  const paths = fetches.map(({ local }) => local);
  const repeated = paths.find((path, index) => paths.indexOf(path) !== index);
  if (repeated !== undefined)
    problems.add(`--fetch: two of them have the same local path, ${repeated}`);
}

async function readFetchRequest(given: string, { cwd }: Invocation) {
  const { parseFetchRequest } = await import("../cluster/fetch.ts");
  return parseFetchRequest(given, cwd);
}
