import { type Check, type Outcome, pass, warn } from "../../../model/check.ts";
import type { ContainerFacts } from "./facts.ts";

const limitMs = 20_000;

/** Checks whether an engine exists and we may use it. Failures are ClusterErrors that say what to do. */
export function engineCheck(facts: ContainerFacts): Check {
  return { name: "engine", limitMs, run: async () => judge(facts) };
}

async function judge(facts: ContainerFacts): Promise<Outcome> {
  const [{ kind }, { version, operatingSystem }] = await Promise.all([facts.engine(), facts.told()]);
  const [leastMajor, leastMinor] = kind.leastVersion;
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  const isOld = major < leastMajor || (major === leastMajor && minor < leastMinor);
  if (!isOld) return pass(`${kind.title} ${version} (${operatingSystem})`);
  return warn(
    `${kind.title} ${version} is older than ${kind.leastVersion.join(".")}, with which this program was never tried.`,
    kind.advice.install,
  );
}
