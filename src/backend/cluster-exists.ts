import { ClusterError } from "../errors.ts";

/** Returns the error for an id that another cluster on this machine has; `removal` is the command that removes that cluster. */
export function clusterExists(
  clusterId: string,
  { removal, cause }: { readonly removal: string; readonly cause?: unknown },
): ClusterError {
  return new ClusterError(
    "cluster-exists",
    `A cluster "${clusterId}" already exists or is being created on this machine.`,
    {
      hint: `Choose another \`clusterId\`, or remove that cluster: ${removal}`,
      facts: { cluster: clusterId },
      cause,
    },
  );
}
