import type { Backend } from "../../backend/contract.ts";
import { ClusterError } from "../../errors.ts";
import type { Runtime } from "../../system/runtime.ts";

/** A backend as users of the library construct it: all its own options are given, and nothing has been queried yet. */
export interface ClusterBackend<Options> {
  readonly distribution: string;
  /** A method and not properties: the environment holds credentials, and options may, so that no print of a backend may show them. */
  settings(): BackendSettings<Options>;
  /** Checks credentials and the like; fails as those checks do. Changes nothing. */
  open(signal: AbortSignal): Promise<Backend<Options>>;
}

export interface BackendSettings<Options> {
  readonly runtime: Runtime;
  readonly options: Options;
  /** Why SELinux can't be set to enforcing on nodes with this distribution, as one sentence; absent: it can on all. */
  readonly selinuxProblem?: (distribution: string) => string | undefined;
}

/** Throws `bad-usage` for anything that isn't a backend. */
export function assertBackend(given: ClusterBackend<unknown>): void {
  const found: Partial<ClusterBackend<unknown>> | null | undefined = given;
  if (typeof found?.settings === "function" && typeof found.open === "function") return;
  throw new ClusterError("bad-usage", "The backend must be a CloudBackend, a ContainerBackend or a VmBackend.");
}
