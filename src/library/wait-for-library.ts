import { waitForCluster } from "../cluster/wait-for-cluster.ts";
import { ClusterError } from "../errors.ts";
import type { Variant } from "../model/cluster-record.ts";
import { passedMs } from "../system/runtime.ts";
import { type WaitOptions, libraryCall, signalOf, usualLimitMs } from "./call-options.ts";
import { keepFailureLogs } from "./install-from-path.ts";
import type { OpenCluster } from "./open-cluster.ts";
import type { SharedConnections } from "./runtime.ts";

const waits = {
  oss: "waitForClusterOss",
  enterprise: "waitForClusterEnterprise",
  none: "waitForCluster",
} as const;

/** Errors to which the nodes' logs add nothing. */
const selfExplanatory: readonly string[] = ["cluster-not-found", "key-missing", "login-refused"];

interface LibraryWait extends WaitOptions {
  readonly variant: Variant;
  /** The superuser's login; absent if there is no superuser. */
  readonly login?: { readonly username: string; readonly password: string };
}

/** Resolves when the platform is ready, as the command `wait` does. After a failure, keeps the nodes' logs. */
export async function waitForLibrary(
  open: OpenCluster,
  shared: SharedConnections,
  {
    variant,
    login = { username: "", password: "" },
    timeoutMs = usualLimitMs,
    ...options
  }: LibraryWait,
): Promise<void> {
  const { backend, record, runtime } = open;
  if (variant !== record.variant) {
    const found =
      record.variant === "none" ? "has no variant" : `is of the variant ${record.variant}`;
    throw new ClusterError("bad-usage", `Cluster "${record.id}" ${found}.`, {
      hint: `Call ${waits[record.variant]}.`,
    });
  }
  const { skipHttpChecks = false } = options;
  const cancelSignal = signalOf(options);
  const request = {
    clusterId: record.id,
    login,
    skipHttpChecks,
    deadlineMs: passedMs(runtime.clock) + timeoutMs,
  };
  try {
    await libraryCall(runtime, { cancelSignal }, async (work) =>
      waitForCluster(work, backend, request),
    );
  } catch (error) {
    const isSelfExplanatory = error instanceof ClusterError && selfExplanatory.includes(error.id);
    if (!isSelfExplanatory && !cancelSignal.aborted)
      await shared.use(async (connections) => keepFailureLogs(open, connections));
    throw error;
  }
}
