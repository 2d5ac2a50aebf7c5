import { isAccessible } from "../../../system/files/is-accessible.ts";
import { join } from "node:path";
import { type Check, type Outcome, pass, warn } from "../../../model/check.ts";
import { creationDirectory, creationFiles } from "../../../system/files/creation-folder.ts";
import { stateFolder } from "../../../system/files/state-folder.ts";
import type { Environment } from "../../../system/runtime.ts";
import { cidrProblem } from "../launch/admin-cidrs.ts";
import type { Group } from "../records/read-groups.ts";
import type { Machine } from "../records/read-machines.ts";
import { isAllowedAddress } from "../launch/why-unreachable.ts";
import type { CloudFacts } from "./facts.ts";
import { cloudLimitMs, failureOf } from "./with-cloud.ts";

const sshPort = 22;

interface Place {
  readonly region: string;
  readonly environment: Environment;
}

/**
 * Checks which address a create would let in, and whether the clusters created here still let it in: people move and
 * addresses change.
 */
export function adminAddressCheck(facts: CloudFacts, place: Place): Check {
  return { name: "admin address", limitMs: cloudLimitMs, run: () => compare(facts, place) };
}

async function compare(facts: CloudFacts, place: Place): Promise<Outcome> {
  const address = await facts.address();
  const seen = `This machine's public address is ${address}`;
  const failures = await Promise.all([facts.instances(), facts.groups()].map(failureOf));
  if (failures.some((failure) => failure !== undefined))
    return pass(`${seen}; it is not known whether clusters allow it`);
  const clusters = await clustersMadeHere((await facts.instances()).machines, (await facts.groups()).groups, place);
  const closed = clusters.filter(({ cidrs }) => !isAllowedAddress(address, cidrs));
  if (closed.length === 0)
    return pass(clusters.length === 0 ? seen : `${seen}, and the clusters created here allow it`);
  const named = closed.map(
    ({ id, groupId, cidrs }) => `${id} (security group ${groupId}: ${cidrs.join(", ") || "none"})`,
  );
  return warn(
    `${seen}, which is not allowed to reach ${closed.length === 1 ? "cluster" : "clusters"} ${named.join("; ")}.`,
    `Allow it: run the admit command for ${closed.map(({ id }) => id).join(" and ")}.`,
  );
}

interface LivingCluster {
  readonly id: string;
  readonly groupId: string;
  /** The address ranges that may log in. */
  readonly cidrs: readonly string[];
}

/**
 * Returns only clusters whose key is on this machine. Nobody logs in to other clusters from here, so their ranges don't
 * matter.
 */
async function clustersMadeHere(
  machines: readonly Machine[],
  groups: readonly Group[],
  { region, environment }: Place,
): Promise<readonly LivingCluster[]> {
  const living = machines.filter(({ state }) => ["starting", "running"].includes(state));
  const used = new Set(living.flatMap(({ groupIds }) => groupIds));
  const root = join(stateFolder(environment), "cloud", region);
  const found = await Promise.all(
    groups.map(async (group): Promise<LivingCluster | undefined> => {
      const { clusterId, creationId } = group;
      const { privateKey } = creationFiles(creationDirectory(root, clusterId, creationId));
      if (!used.has(group.id) || !(await isAccessible(privateKey))) return undefined;
      return { id: clusterId, groupId: group.id, cidrs: loginRanges(group) };
    }),
  );
  return found.filter((cluster) => cluster !== undefined);
}

function loginRanges(group: Group): readonly string[] {
  const rules = group.rules.filter(
    ({ IpProtocol, FromPort = 0, ToPort = 65_535 }) =>
      IpProtocol === "-1" || (IpProtocol === "tcp" && FromPort <= sshPort && ToPort >= sshPort),
  );
  const ranges = rules.flatMap((rule) => [
    ...(rule.IpRanges ?? []).map((range) => range.CidrIp),
    ...(rule.Ipv6Ranges ?? []).map((range) => range.CidrIpv6),
  ]);
  const known = ranges.filter((range) => range !== undefined).filter((range) => cidrProblem(range) === undefined);
  return [...new Set(known)];
}
