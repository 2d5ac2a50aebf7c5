import { ClusterError, hasErrorId } from "../errors.ts";
import { type ClusterRecord, nodeReference } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { retry } from "../system/retry.ts";
import type { Runtime } from "../system/runtime.ts";
import { ruleOf, waits } from "../system/waits.ts";
import { clusterKey, openConnections } from "./connections.ts";

const loginsAtOnce = 20;

/** Resolves when all nodes of a cluster that run again accept logins. Without the cluster's key, it only says that. */
export async function awaitLogins(
  cluster: ClusterRecord,
  logins: Pick<Login, "setsClocks" | "areBooting">,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<void> {
  if (!(await clusterKey(cluster)).isHere) {
    runtime.progress.note("This machine doesn't have the cluster's key, so nobody waits for its nodes.");
    return;
  }
  using step = runtime.progress.start("Log in to the nodes");
  await using connections = openConnections(cluster.directory, runtime);
  await mapConcurrently(
    cluster.nodes,
    loginsAtOnce,
    async (node) => awaitLogin({ ...logins, node, connections }, runtime, signal),
    signal,
  );
  step.done();
}

interface Login {
  readonly node: ClusterRecord["nodes"][number];
  readonly connections: ConnectionPool;
  /** Whether the nodes' clocks stand where they were when the nodes stopped. */
  readonly setsClocks: boolean;
  /** Whether their users' logins may be refused for a while. */
  readonly areBooting: boolean;
}

async function awaitLogin(
  { node, connections, setsClocks, areBooting }: Login,
  { clock }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  const logIn = async (): Promise<void> => {
    const connection = await connections.connect(node, signal).catch((error: unknown) => {
      throw areBooting ? asTransient(error) : error;
    });
    if (!setsClocks) return;
    const time = `@${(clock.now() / 1000).toFixed(3)}`;
    const set = {
      argv: ["date", `--set=${time}`],
      sudo: true,
      limitMs: waits.continuedLogin.limitMs,
      task: "setting its clock",
    };
    const { status, stderr } = await connection.run(set, signal);
    if (status === 0) return;
    throw new ClusterError(
      "remote-command-failed",
      `The clock of ${nodeReference(node)} cannot be set: ${stderr.trim()}.`,
    );
  };
  await retry(logIn, ruleOf(waits.continuedLogin, clock), signal);
}

function asTransient(error: unknown): unknown {
  if (!hasErrorId(error, "connection-failed") || error.transient) return error;
  const { message, hint, facts } = ClusterError.marked(error);
  return new ClusterError(error.id, message, { facts, transient: true, cause: error, ...(hint && { hint }) });
}
