import { existsSync } from "node:fs";
import type { Runtime } from "../../system/runtime.ts";
import { ClusterError } from "../../errors.ts";
import { type ConnectionPool, createConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { createKnownHosts } from "../../ssh/known-hosts.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";

/**
 * Opens connections to the nodes of the cluster whose key and known hosts are in this folder. The log of what is done on the nodes goes there too.
 */
export function openConnections(directory: string, { clock, progress }: Omit<Runtime, "environment">): ConnectionPool {
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

/** Adds a hint to a failed connection: the SSH code can't know which of this program's commands tell more. Returns any other error unchanged. */
export function withAdvice(error: unknown): unknown {
  if (!(error instanceof ClusterError) || error.id !== "connection-failed" || error.hint !== undefined) return error;
  const { transient, cause } = error;
  const { message, facts } = ClusterError.marked(error);
  return new ClusterError(error.id, message, {
    hint: "Run the inspect command to see whether that machine still runs, and the doctor command to see whether it accepts connections from here.",
    facts,
    transient,
    cause,
  });
}
