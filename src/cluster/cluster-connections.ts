import { existsSync } from "node:fs";
import type { Surroundings } from "../backend/backend.ts";
import { createConnectionPool } from "../ssh/connection-pool.ts";
import { createKnownHosts } from "../ssh/known-hosts.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import { creationFiles } from "../system/creation-folder.ts";

/** The way into the nodes of the cluster whose key and known hosts are kept in this folder. What is done on them is logged beside these. */
export function openConnections(
  directory: string,
  { clock, progress }: Omit<Surroundings, "environment">,
): ConnectionPool {
  const files = creationFiles(directory);
  // A cluster that was created on another machine has no folder here.
  if (existsSync(directory)) progress.logTo(files.log);
  return createConnectionPool({
    privateKeyFile: files.privateKey,
    knownHosts: createKnownHosts(files.knownHosts),
    clock,
    progress,
  });
}
