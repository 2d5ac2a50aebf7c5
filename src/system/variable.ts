import type { Environment } from "./runtime.ts";

/** The value of an environment variable. An empty one counts as unset: CI systems set a missing value so. */
export function variable(environment: Environment, name: string): string | undefined {
  const value = environment[name];
  return value === "" ? undefined : value;
}
