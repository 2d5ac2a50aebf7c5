import { ClusterError } from "../errors.ts";
import type { Environment } from "./runtime.ts";
import { replacement } from "./utf8.ts";

/**
 * The value of an environment variable. An empty one counts as unset: CI systems set a missing
 * value so. Throws `machine-not-set-up` for bytes that aren't UTF-8, because the runtime has
 * changed them.
 */
export function variable(environment: Environment, name: string): string | undefined {
  const value = environment[name];
  if (value?.includes(replacement) === true)
    throw new ClusterError("machine-not-set-up", `${name}: some of its bytes are not UTF-8.`, {
      hint: `Set ${name} to another value, or unset it.`,
      facts: { variable: name },
    });
  return value === "" ? undefined : value;
}
