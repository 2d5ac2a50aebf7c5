import { existsSync } from "node:fs";
import type { Surroundings } from "../../system/surroundings.ts";
import { ClusterError } from "../../errors.ts";
import { createConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { createKnownHosts } from "../../ssh/known-hosts.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";

/** The way into the nodes of the cluster whose key and known hosts are kept in this folder. What is done on them is logged beside these. */
export function openConnections(
  directory: string,
  { clock, progress }: Omit<Surroundings, "environment">,
): ConnectionPool {
  const files = creationFiles(directory);
  // A cluster that was created on another machine has no folder here.
  if (existsSync(directory)) progress.logTo(files.log);
  const pool = createConnectionPool({
    privateKeyFile: files.privateKey,
    knownHosts: createKnownHosts(files.knownHosts),
    clock,
    progress,
  });
  return {
    adopt: (node, connection) => pool.adopt(node, connection),
    connect: async (node, signal) => {
      try {
        return await pool.connect(node, signal);
      } catch (error) {
        throw withAdvice(error);
      }
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

/** A failed connection with what to do about it: SSH itself can't know which of this program's commands tell more. Any other error as it is. */
export function withAdvice(error: unknown): unknown {
  if (!(error instanceof ClusterError) || error.id !== "connection-failed" || error.hint !== undefined) return error;
  const { message, facts, transient, cause } = error;
  return new ClusterError(error.id, message, {
    hint: "The inspect command tells whether that machine still runs, the doctor command whether it lets this one in.",
    facts,
    transient,
    cause,
  });
}
