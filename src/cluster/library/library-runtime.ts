import { type Environment, type Runtime, systemClock } from "../../system/runtime.ts";
import { LineProgress } from "./line-progress.ts";

/** Options that every backend of the library takes besides its own. */
export interface RuntimeOptions {
  /**
   * Variables by name, as `backend/cloud/README.md` lists them: credentials, endpoints, `XDG_STATE_HOME` (where keys and logs are kept). Default: the
   * variables of the process. The cloud's own packages read some of theirs, such as `AWS_CONFIG_FILE`, from the process in any case.
   */
  readonly environment?: Environment;
  /** Called with one printable line, without a newline and with secrets masked, for each step, result, note and wait. Default: no reports. */
  readonly onProgress?: (line: string) => void;
}

export const libraryRuntime = (
  { environment, onProgress }: RuntimeOptions,
  processEnvironment: Environment,
): Runtime => ({
  environment: environment ?? processEnvironment,
  clock: systemClock,
  progress: new LineProgress(onProgress ?? (() => {})),
});
