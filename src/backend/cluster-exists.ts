import { ClusterError } from "../errors.ts";

/** Whether a creation failed because its id is another cluster's. */
export function isClusterExists(error: unknown): boolean {
  return error instanceof ClusterError && error.id === "cluster-exists";
}
