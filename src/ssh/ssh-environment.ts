import { urlSecrets } from "../system/mask-url.ts";
import { minimalEnvironment } from "../system/processes/run-program.ts";
import type { Environment } from "../system/runtime.ts";
import { variable } from "../system/variable.ts";

/**
 * For `ssh`, which may log in through a container engine. The engine's address stands in the words of that login, unless it holds a password: then only the
 * environment has it.
 */
export function sshEnvironment(environment: Environment): Environment {
  const addresses = ["CONTAINER_HOST", "DOCKER_HOST"].flatMap((name): [string, string][] => {
    const value = variable(environment, name);
    return value === undefined || urlSecrets(value).length === 0 ? [] : [[name, value]];
  });
  return { ...minimalEnvironment(environment), ...Object.fromEntries(addresses) };
}
