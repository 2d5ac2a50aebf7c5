import type { BackendKind } from "../backend/contract.ts";
import type { Context } from "../cli/command.ts";
import {
  BadValue,
  type Invocation,
  type ValueType,
  flag,
  option,
  whileOptionsAreRead,
} from "../cli/options/option.ts";
import {
  byRule,
  duration,
  parseDuration,
  parseNewFile,
  path as anyPath,
  outputFormat,
  value,
  verbose,
} from "../cli/options/value-types.ts";
import { clusterIdRule } from "../model/parse-values.ts";
import type { Checked } from "../model/checked.ts";
import { scopeOptions } from "./backend-options.ts";

const clusterIdTraits = {
  flag: "--cluster-id",
  short: "-c",
  summary: "The cluster's unique id",
  completeWith: ["list", "--quiet"],
  isRepeated: true,
} as const;
/** Also set by `run --local`, whose command may run this program again. */
const fromVariable = { ...clusterIdTraits, environment: "CLUSTER_ID" } as const;
const defaultClusterId = "default";
const clusterIdType = byRule(clusterIdRule);

export const clusterId = option(clusterIdType, { ...fromVariable, default: defaultClusterId });

/** `--cluster-id`, for a command that must know whether it was given. */
export const clusterIdIfGiven = option(clusterIdType, {
  ...fromVariable,
  defaultText: defaultClusterId,
});

export const orDefaultClusterId = (given: string | undefined): string => given ?? defaultClusterId;

/** `--cluster-id`, for a cluster that exists only while the command runs. */
export const temporaryClusterId = option(clusterIdType, {
  ...clusterIdTraits,
  defaultFrom: () => `once-${crypto.randomUUID().slice(0, 8)}`,
  defaultText: "a new one, such as once-3f9a2c17",
});

/** Returns a password option's value. "-" asks for it on a terminal, and otherwise reads a line of stdin. */
export const readPassword = async <Given extends string | undefined>(
  given: Given,
  owner: "Superuser" | "Login",
  { stdin, signal }: Pick<Context, "stdin" | "signal">,
): Promise<Given | string> =>
  given === "-" ? stdin.readSecret(`${owner} password: `, signal) : given;

export const canAsk = ({ isTerminal }: Pick<Context, "isTerminal">): boolean =>
  isTerminal.stdin && isTerminal.stderr;

const usualTimeout = "60m";

/** `--timeout`; the command states what is limited. */
export const timeout = (summary: string) =>
  option(duration, {
    flag: "--timeout",
    placeholder: "<duration>",
    summary,
    default: parseDuration(usualTimeout),
    defaultText: usualTimeout,
  });

/** A name that `findNodes` accepts. */
export const nodeSelector = (machineId: RegExp): ValueType<string> => ({
  ...oneNode(machineId),
  offers: ["all", "masters", "agents", "public_agents"],
});

/** Likewise, for a command that takes one node: completion offers no groups. */
export const oneNode = (machineId: RegExp) =>
  value(async (given) => {
    // Loaded late: the parts of Bun that it needs take two thirds of a start's time.
    const { nodeSelectorProblem } = await import("../cluster/find-cluster.ts");
    const problem = nodeSelectorProblem(given, machineId);
    if (problem !== undefined) throw new BadValue(problem);
    return given;
  });

/** The command whose output completion offers as node names. */
export const nodeNames = ["inspect", "--output", "names"] as const;

export const skipHttpChecks = flag({
  flag: "--skip-http-checks",
  summary:
    "Skip the HTTP checks of the masters, for clusters whose web UI this computer cannot reach",
});

export const junit = option(value(laterFile, "file"), {
  flag: "--junit",
  placeholder: "<file>",
  summary:
    "File for a report in JUnit's format, which CI systems show; also written after a failure",
});

export const junitFrom = option(anyPath, {
  flag: "--junit-from",
  placeholder: "<file>",
  summary: "Report of the tests in JUnit's format, whose test cases the report shows",
  repeatable: true,
});

export const reportFile = option(value(laterFile, "file"), {
  flag: "--report",
  placeholder: "<file>",
  summary:
    "HTML file that shows what happened on which node and when, with the logs; also written after success",
});

/** Checks before any work that a file can be written; its folder may not exist yet. Returns the absolute path. */
export async function laterFile(
  given: string,
  invocation: Pick<Invocation, "cwd">,
): Promise<string> {
  const path = await parseNewFile(given, invocation);
  const { dirname } = await import("node:path");
  const [{ cannotWrite, writeProblem }, { isDiskFull, isFileOrAbsent }] = await Promise.all([
    import("../system/files/draft.ts"),
    import("../system/files/private-file.ts"),
  ]);
  const problem = await writeProblem(dirname(path));
  // A full disk is no mistake on the command line.
  if (isDiskFull(problem?.cause)) throw cannotWrite(path, problem?.cause);
  if (problem !== undefined) throw new BadValue(`cannot write to ${problem.text}`);
  if (!(await isFileOrAbsent(path))) throw new BadValue("it is not a regular file");
  return path;
}

/** The type of a value whose reader returns every problem with it. */
export const checkedValue = <Single>(
  read: (given: string, invocation: Invocation) => Promise<Checked<Single>>,
  completes?: "file" | "directory",
): ValueType<Single> =>
  value(async (given, invocation) => {
    const outcome = await read(given, invocation);
    if (outcome.problems === undefined) return outcome.value;
    throw new BadValue(outcome.problems.join("; "));
  }, completes);

/** A folder with a checkout of the platform's repository. It is read completely before anything else happens. */
export const checkout = checkedValue(async (given, { cwd }) => {
  const [path, { readCheckout }] = await Promise.all([
    import("node:path"),
    import("../platform/checkout/checkout.ts"),
  ]);
  return readCheckout(path.resolve(cwd, given), whileOptionsAreRead());
}, "directory");

/** The options of a command for one cluster: its own, and those that all such commands have. */
export const clusterOptions = <Own>(kind: BackendKind, own: Own) => ({
  clusterId,
  ...scopeOptions(kind),
  ...own,
  output: outputFormat(["text", "json"]),
  verbose,
});
