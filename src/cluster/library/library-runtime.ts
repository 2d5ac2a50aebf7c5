import { type Environment, type Runtime, systemClock } from "../../system/runtime.ts";
import { anyText, callback, mappingOf, optional, readArguments, type Shape } from "../../model/read-arguments.ts";
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

/** Splits what a backend's constructor was given. Throws `bad-usage`. */
export function splitRuntimeOptions<Own extends object>(
  given: Own & RuntimeOptions,
  processEnvironment: Environment,
): { readonly runtime: Runtime; readonly own: Own } {
  // The reader of the backend's own options reports what isn't an object.
  if (Object(given) !== given) return { runtime: libraryRuntime({}, processEnvironment), own: given };
  const { environment, onProgress, ...own } = given;
  const options = {
    ...(environment !== undefined && { environment }),
    ...(onProgress !== undefined && { onProgress }),
  };
  return { runtime: libraryRuntime(options, processEnvironment), own: own as Own };
}

export function libraryRuntime(given: RuntimeOptions, processEnvironment: Environment): Runtime {
  const { environment, onProgress } = readArguments(given, shape);
  return {
    environment: environment ?? processEnvironment,
    clock: systemClock,
    progress: new LineProgress(onProgress ?? (() => {})),
  };
}

const shape: Shape<RuntimeOptions> = {
  environment: optional(mappingOf((value) => (value === undefined ? undefined : anyText(value)))),
  onProgress: optional(callback),
};
