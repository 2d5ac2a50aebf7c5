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

/** Does what the command `create --wait` does after the machines are there, if the request wants it. Destroys the cluster after a failure. */
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
  try {
    await cluster.installFromPath({ buildArtifact: platform, ...limits });
    await cluster.waitForCluster(limits);
  } catch (error) {
    if (!keepOnFailure) await cluster.destroy().catch(() => {});
    throw error;
  }
}
