import { ClusterError } from "../errors.ts";

/** The refusal of an id that another cluster of this machine has; `removal` is the command that removes that one. */
export function clusterExists(
  clusterId: string,
  { removal, cause }: { readonly removal: string; readonly cause?: unknown },
): ClusterError {
  return new ClusterError("cluster-exists", `A cluster "${clusterId}" exists, or is being created, on this machine.`, {
    hint: `Choose another \`clusterId\`, or remove it: ${removal}`,
    facts: { cluster: clusterId },
    cause,
  });
}
