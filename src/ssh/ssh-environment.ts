import { urlSecrets } from "../system/mask-url.ts";
import { minimalEnvironment } from "../system/processes/run-program.ts";
import type { Environment } from "../system/runtime.ts";
import { variable } from "../system/variable.ts";

/**
 * Whether nobody may see the address of an engine: every user sees the words of a command. The
 * user's name in front of a host of SSH is no secret.
 */
export function isSecretAddress(address: string): boolean {
  const url = URL.parse(address);
  return url?.protocol === "ssh:" ? url.password !== "" : urlSecrets(address).length > 0;
}

/**
 * For `ssh`, which may log in through a container engine. The engine's address stands in the words
 * of that login, unless it holds a password: then only the environment has it.
 */
export function sshEnvironment(environment: Environment): Environment {
  const addresses = ["CONTAINER_HOST", "DOCKER_HOST"].flatMap((name): [string, string][] => {
    const value = variable(environment, name);
    return value === undefined || !isSecretAddress(value) ? [] : [[name, value]];
  });
  return { ...minimalEnvironment(environment), ...Object.fromEntries(addresses) };
}
