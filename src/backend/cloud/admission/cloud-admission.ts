import type { Admission, AdmissionRequest } from "../../contract.ts";
import { ClusterError, hasErrorId, messageOf, quoted } from "../../../errors.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";
import type { Environment } from "../../../system/runtime.ts";
import type { CloudApi } from "../api/api.ts";
import { isFailure } from "../api/api-errors.ts";
import { admissions, cidrProblem, normalizeCidr } from "../launch/admin-cidrs.ts";
import { checkAddress } from "../launch/check-address.ts";
import type { Group } from "../records/read-groups.ts";
import { clusterGroup } from "./cluster-group.ts";
import { admittedPorts, admittedRanges, isPortAdmitted, rulesFor } from "./group-rules.ts";

const sshPort = 22;
const mostAttempts = 3;

/** Changes the rules of clusters' own security groups, and nothing else. See Admission. */
export function cloudAdmission(api: CloudApi, environment: Environment): Admission {
  return {
    list: async (cluster, signal) => admittedRanges(await clusterGroup(api, cluster, signal)),
    admit: async (cluster, { range, openPorts }, signal) => {
      const chosen = range === undefined ? await ownRange(environment, signal) : parseRange(range);
      await admit(api, cluster, { range: chosen, openPorts }, signal);
      return chosen;
    },
    remove: async (cluster, range, signal) => {
      const chosen = parseRange(range);
      await revoke(api, cluster, chosen, signal);
      return chosen;
    },
  };
}

async function admit(
  api: CloudApi,
  cluster: ClusterName,
  { range, openPorts }: AdmissionRequest & { readonly range: string },
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const group = await clusterGroup(api, cluster, signal);
    const known = admittedPorts(group);
    const ports = known.length === 0 ? [sshPort, ...openPorts] : known;
    const missing = ports.filter((port) => !isPortAdmitted(group, range, port));
    if (missing.length === 0) return;
    const request = { GroupId: group.id, IpPermissions: admissions([range], missing) };
    try {
      await api.call("AuthorizeSecurityGroupIngress", request, signal);
      return;
    } catch (error) {
      // Somebody else admits the same range right now. If one rule exists, the API refuses the whole request.
      if (!isFailure(error, "rule-exists") || attempt === mostAttempts) throw error;
    }
  }
}

async function revoke(api: CloudApi, cluster: ClusterName, range: string, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const group = await clusterGroup(api, cluster, signal);
    const IpPermissions = rulesFor(group, range);
    if (IpPermissions.length === 0 && attempt === 1) throw notAdmitted(cluster, range, group);
    if (IpPermissions.length === 0) return;
    try {
      await api.call("RevokeSecurityGroupIngress", { GroupId: group.id, IpPermissions }, signal);
      return;
    } catch (error) {
      // The first answer was lost, or somebody else removed one of the rules: then none of the others was removed.
      if (!isFailure(error, "rule-missing") || attempt === mostAttempts) throw error;
    }
  }
}

/** Only `0.0.0.0/0` and `::/0` may mean every address: the cloud also reads `192.0.2.7/0` as `0.0.0.0/0`. */
function parseRange(given: string): string {
  const problem = cidrProblem(given);
  if (problem !== undefined) throw new ClusterError("bad-usage", `${problem}.`);
  const range = normalizeCidr(given);
  if (!range.endsWith("/0") || range === "0.0.0.0/0" || range === "::/0") return range;
  throw new ClusterError("bad-usage", `${quoted(given)} contains every address.`, {
    hint: "Pass a longer prefix, such as /32 for one address. To admit everyone, pass 0.0.0.0/0 or ::/0.",
  });
}

async function ownRange(environment: Environment, signal: AbortSignal): Promise<string> {
  try {
    return normalizeCidr(await checkAddress(environment, signal));
  } catch (error) {
    if (!hasErrorId(error, "machine-not-set-up")) throw error;
    throw new ClusterError(error.id, messageOf(error), {
      hint: "Pass this machine's public address to the admit command.",
      facts: ClusterError.marked(error).facts,
      cause: error,
    });
  }
}

function notAdmitted({ id }: ClusterName, range: string, group: Group): ClusterError {
  const ranges = admittedRanges(group).map((admitted) => admitted.range);
  return new ClusterError("bad-usage", `${range} is not admitted to cluster "${id}".`, {
    hint: ranges.length === 0 ? "No address is admitted to it." : `These ranges are admitted: ${ranges.join(", ")}`,
    facts: { cluster: id, ranges },
  });
}
