import type { Backend } from "../../backend/contract.ts";
import type { Runtime } from "../../system/runtime.ts";

/** A backend as users of the library construct it: all its own options are given, and nothing has been queried yet. */
export interface ClusterBackend<Options> {
  readonly runtime: Runtime;
  readonly distribution: string;
  readonly options: Options;
  /** Checks credentials and the like; fails as those checks do. Changes nothing. */
  open(signal: AbortSignal): Promise<Backend<Options>>;
}
