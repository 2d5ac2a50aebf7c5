import { defineCommand } from "../../cli/command.ts";
import {
  BadValue,
  flag,
  type Invocation,
  option,
  type ValuesOf,
  wordsArgument,
} from "../../cli/options/option.ts";
import type { Problems } from "../../cli/options/problems.ts";
import {
  anyText,
  duration,
  outputFormat,
  text,
  value,
  verbose,
} from "../../cli/options/value-types.ts";
import { quoted } from "../../errors.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { scopeOptions } from "../backend-options.ts";
import { checkedValue, checkout, clusterId, nodeNames, nodeSelector } from "../options.ts";
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
  local: flag({
    flag: "--local",
    summary:
      "Run the command on this computer, where it may stop nodes and cause faults; it finds the cluster by variables, see the description of `run`",
  }),
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
    summary: "Checkout or folder to send first, as `sync` does",
  }),
  user: option(value(nodeUser), {
    flag: "--user",
    placeholder: "<name>",
    summary: "The node's user who runs the command",
    defaultText: "root",
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
      "Environment variable for the command; overrides all others. Its value is masked in recorded commands and, if the key looks like that of a secret, in what this program says itself; the command's own output passes unchanged on one node and with --local",
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

export const ignore = option(
  value(async (given) => (await import("./read-ignored.ts")).readIgnored(given)),
  {
    flag: "--ignore",
    placeholder: "<what>",
    summary:
      "What may go wrong on nodes while the command runs: oom, core-dump, kernel-error, failed-unit, reboot, clock-jump, error-line, watch, or all; with =TEXT, only lines that contain TEXT, in which * stands for anything",
    repeatable: true,
  },
);

const repeatOptions = {
  until: option(duration, {
    flag: "--until",
    placeholder: "<duration>",
    summary:
      "Run the command again and again, a second apart, until it succeeds or this time is over; prints the output of the last time",
  }),
  fails: flag({
    flag: "--fails",
    summary:
      "Succeed if the command fails on every node, and fail if it succeeds on one; status 126 or 127 means that it could not be executed, and is passed on",
  }),
};

const watchOptions = {
  watch: flag({
    flag: "--watch",
    summary:
      "Watch all nodes while the command runs; print what goes wrong at once, and fail with status 255 even if the command succeeds",
  }),
  ignore,
};

/** Account names that systems accept, none of which is an option. */
function nodeUser(given: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(given)) return given;
  throw new BadValue(`${quoted(given)} is not the name of a user`);
}

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
      "Run any command as root on a node, by default on the first master that answers. The command gets the environment that a test runner needs. The terminal, stdin, signals and the exit status are passed through. With --fetch, files are copied from the node after the command, even if it failed. Put the options of this program before COMMAND: everything from its first word on belongs to the command.\n\nSeveral nodes, or a group of nodes, run the command at the same time, 64 at once, without a terminal and with an empty stdin. Each line of output begins with the name of its node, and a file that is fetched goes into a folder of that name. A node that fails doesn't stop the others. The exit status is the highest of all nodes; a node that cannot be reached counts as 255.\n\nWith --until, the command has no terminal and an empty stdin, and a node that cannot be reached is tried again. The exit status is that of the last attempt. With --fails, a node that cannot be reached is still an error.\n\nA single word is a command line for the node's shell: to use special characters such as single quotes, wrap the whole command in double quotes. Several words are passed on unchanged.\n\nWith --watch, a process that is killed for lack of memory, a core dump, an error of the kernel, a unit that fails, a node that restarts or stops, a clock that jumps, a line that platform.yaml names in `logs.errors`, and a platform's program `watch` that fails are printed within seconds. The exit status is then 255, even if the command succeeds. What faults, power changes and restored snapshots of this program explain doesn't count, nor does what --ignore names.\n\nWith --local, the command runs on this computer, for example to stop nodes while it uses the cluster. CLUSTER_ID names the cluster, and is the default of --cluster-id; CLUSTER_ENGINE or CLUSTER_REGION says where it is, and is the default of --engine or --cloud-region; CLUSTER_PROGRAM is the path of this program. CLUSTER_MASTERS, CLUSTER_AGENTS and CLUSTER_PUBLIC_AGENTS hold the addresses of the nodes as this computer reaches them, separated by spaces, or where it reaches none, the nodes' names in the SSH configuration. CLUSTER_SSH_CONFIG and CLUSTER_JSON are the paths of that configuration and of what `inspect --output json` prints, as they were when the command began.\n\nOther users of this computer can see the command line, and a crash prints it: pass secrets with --env-file FILE and --login-pw -.\n\nIf this program itself fails after it has started to connect, or because a node is stopped, it exits with 255, like ssh.",
    positionals: {
      words: wordsArgument("words", {
        name: "COMMAND",
        summary: "The command and its arguments",
      }),
    },
    options: {
      clusterId,
      ...sessionOptions,
      ...repeatOptions,
      ...watchOptions,
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
        words: "run --until 2m --node agents systemctl is-active etcd",
        summary: "Wait until a service runs on all agents",
      },
      {
        words: "run --local pytest failover",
        summary: "Run tests here, which may stop nodes: `$CLUSTER_PROGRAM node stop master_0`",
      },
      {
        words: "run \"pytest -k 'not slow' | tee log\"",
        summary: "Pass a command line to the node's shell",
      },
    ],
    check: (given, problems) => {
      checkSession(given, problems);
      if (given.local === true && given.output === "json")
        problems.add("--output: cannot be json with --local");
      if (given.until !== undefined && (given.fetch ?? []).length > 0)
        problems.add("--fetch: cannot be combined with --until");
    },
    run: async (input, context) => {
      const { executeRun } = await import("./execute-run.ts");
      return executeRun(kind, input, context);
    },
  });

type Session = Partial<ValuesOf<typeof sessionOptions & typeof watchOptions>> & {
  readonly node?: readonly string[];
  readonly words?: readonly string[];
};

/** Refuses options that contradict each other, of `run` and `once`, and a command that is none. */
export function checkSession(
  { words = [], local, node = [], fetch = [], noTestEnv, user, ...watching }: Session,
  problems: Problems,
): void {
  const { watch, ignore: ignored = [] } = watching;
  // A shell runs nothing and succeeds, as where a script's variable is not set.
  if (words.length === 1 && words[0]?.trim() === "") problems.add("COMMAND: must not be empty");
  if (watch !== true && ignored.length > 0) problems.add("--ignore: only allowed with --watch");
  const ofNodes = {
    "--node": node.length > 0,
    "--fetch": fetch.length > 0,
    "--no-test-env": noTestEnv,
    "--user": user !== undefined,
  };
  for (const [name, isGiven] of Object.entries(ofNodes))
    if (local === true && isGiven === true)
      problems.add(`${name}: cannot be combined with --local`);
  const paths = fetch.map((each) => each.local);
  const repeated = paths.find((path, index) => paths.indexOf(path) !== index);
  if (repeated !== undefined)
    problems.add(`--fetch: two of them have the same local path, ${repeated}`);
}

async function readFetchRequest(given: string, { cwd }: Invocation) {
  const { parseFetchRequest } = await import("../../cluster/fetch.ts");
  return parseFetchRequest(given, cwd);
}
