import { type Check, type Outcome, pass, warn } from "../../../doctor/check.ts";
import type { ContainerFacts } from "./facts.ts";

const limitMs = 20_000;
/** The first one with cgroups 2. */
const leastVersion = [20, 10] as const;

/** Whether there is a Docker, and we may use it. What it fails with is a ClusterError that says what to do. */
export function engineCheck(facts: ContainerFacts): Check {
  return { name: "docker", limitMs, run: async () => judge(facts) };
}

async function judge(facts: ContainerFacts): Promise<Outcome> {
  const { version, operatingSystem } = await facts.engine();
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  const isOld = major < leastVersion[0] || (major === leastVersion[0] && minor < leastVersion[1]);
  if (!isOld) return pass(`Version ${version} (${operatingSystem})`);
  return warn(
    `Docker ${version} is older than ${leastVersion.join(".")}, with which this program was never tried.`,
    "Install a newer one: https://docs.docker.com/engine/install/",
  );
}
