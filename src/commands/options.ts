import { BadValue, type Invocation, flag, option, whileOptionsAreRead } from "../cli/options/option.ts";
import { duration, value } from "../cli/options/value-types.ts";
import { clusterIdProblem } from "../model/parse-values.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";

const clusterIdTraits = {
  flag: "--cluster-id",
  short: "-c",
  summary: "The cluster's unique id",
  completeWith: ["list", "--quiet"],
} as const;
const defaultClusterId = "default";

export const clusterId = option(value(parseClusterId), { ...clusterIdTraits, default: defaultClusterId });

/** The same option, for a command that must know whether it was given. */
export const clusterIdIfGiven = option(value(parseClusterId), { ...clusterIdTraits, defaultText: defaultClusterId });

export const orDefaultClusterId = (given: string | undefined): string => given ?? defaultClusterId;

/** `--timeout`; the command states what is limited. */
export const timeout = (summary: string, defaultText: string, defaultMs: number) =>
  option(duration, { flag: "--timeout", placeholder: "<duration>", summary, default: defaultMs, defaultText });

export const node = (machineId: RegExp) =>
  option(
    value(async (given) => {
      // Loaded late: the parts of Bun that it needs take two thirds of a start's time.
      const { nodeReferenceProblem } = await import("../cluster/find-cluster.ts");
      const problem = nodeReferenceProblem(given, machineId);
      if (problem !== undefined) throw new BadValue(problem);
      return given;
    }),
    {
      flag: "--node",
      summary: "Node to run on: its public or private IP address, its machine id, or <role>_<number> such as agent_0",
      defaultText: "the first master that answers",
    },
  );

export const skipHttpChecks = flag({
  flag: "--skip-http-checks",
  summary: "Skip the HTTP checks of the masters, for clusters whose web UI this machine cannot reach",
});

/** A folder with a checkout of the platform's repository. It is read completely before anything else happens. */
export const checkout = value(readCheckout, "directory");

/** Throws `BadValue` with every problem of the folder. */
async function readCheckout(given: string, { cwd }: Pick<Invocation, "cwd">): Promise<Checkout> {
  const [path, platform] = await Promise.all([import("node:path"), import("../platform/checkout/checkout.ts")]);
  const outcome = await platform.readCheckout(path.resolve(cwd, given), whileOptionsAreRead());
  if (outcome.problems === undefined) return outcome.value;
  throw new BadValue(outcome.problems.join("; "));
}

function parseClusterId(given: string): string {
  const problem = clusterIdProblem(given);
  if (problem !== undefined) throw new BadValue(problem);
  return given;
}
