import type { ClusterRequest } from "./open-cluster.ts";

/** The part of a `Cluster` that an installation needs. */
interface Installable {
  installFromPath(installation: {
    readonly buildArtifact: string;
    readonly timeoutMs?: number;
    readonly cancelSignal?: AbortSignal;
  }): Promise<void>;
  waitForCluster(options: {
    readonly timeoutMs?: number;
    readonly cancelSignal?: AbortSignal;
  }): Promise<void>;
  destroy(): Promise<void>;
}

/**
 * Does what the command `create --wait` does after the machines are there, if the request wants it.
 * Destroys the cluster after a failure; if that fails too, throws a SuppressedError with both
 * errors.
 */
export async function installAtCreation(
  cluster: Installable,
  request: ClusterRequest,
): Promise<void> {
  if (request.from !== undefined || request.install !== true) return;
  const { platform = "", timeoutMs, cancelSignal, keepOnFailure = false } = request;
  const limits = {
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(cancelSignal !== undefined && { cancelSignal }),
  };
  const state = { isWanted: keepOnFailure };
  await using _removal = {
    [Symbol.asyncDispose]: async () => {
      if (!state.isWanted) await cluster.destroy();
    },
  };
  await cluster.installFromPath({ buildArtifact: platform, ...limits });
  await cluster.waitForCluster(limits);
  state.isWanted = true;
}
