import type { Backend } from "../../model/backend.ts";
import type { Surroundings } from "../../system/surroundings.ts";

/** A backend as the library's users make one: all its own options are given, nothing has been asked yet. */
export interface ClusterBackend<Options> {
  readonly surroundings: Surroundings;
  readonly distribution: string;
  readonly options: Options;
  /** Looks for credentials and the like, and fails as they do. Changes nothing. */
  open(signal: AbortSignal): Promise<Backend<Options>>;
}
