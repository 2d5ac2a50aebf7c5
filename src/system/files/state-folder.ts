import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Environment } from "../runtime.ts";

/** The folder for this machine's keys, known hosts and logs: `$XDG_STATE_HOME/cluster-e2e`. */
export function stateFolder(environment: Environment): string {
  const base = environment["XDG_STATE_HOME"];
  // The XDG specification says that a relative path must be ignored.
  const root =
    base !== undefined && isAbsolute(base) ? base : join(environment["HOME"] ?? homedir(), ".local", "state");
  return join(root, "cluster-e2e");
}

/** The folder for files that can be fetched again, such as images: `$XDG_CACHE_HOME/cluster-e2e`. */
export function cacheFolder(environment: Environment): string {
  const base = environment["XDG_CACHE_HOME"];
  // The XDG specification says that a relative path must be ignored.
  const root = base !== undefined && isAbsolute(base) ? base : join(environment["HOME"] ?? homedir(), ".cache");
  return join(root, "cluster-e2e");
}
