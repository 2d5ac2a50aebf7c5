import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Passage } from "../../../model/cluster-record.ts";
import { anyMapping } from "../../../model/reader.ts";
import { isSecretAddress, sshEnvironment } from "../../../ssh/ssh-environment.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { homeFolder } from "../../../store/state-folder.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import { maskUrl } from "../../../system/mask-url.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import type { EngineKind, EngineName } from "./engine-kind.ts";
import relay from "./relay.sh" with { type: "text" };

/** Leads to the sshd of the container with this id. */
export type PassageTo = (id: string) => Passage;

/** What says where an engine and its containers are, and how to log in to it. None is a secret. */
const placeNames = [
  "DOCKER_HOST",
  "DOCKER_CONTEXT",
  "DOCKER_CONFIG",
  "DOCKER_API_VERSION",
  "DOCKER_TLS",
  "DOCKER_TLS_VERIFY",
  "DOCKER_CERT_PATH",
  "CONTAINER_HOST",
  "CONTAINER_CONNECTION",
  "CONTAINER_SSHKEY",
  "CONTAINERS_CONF",
  "CONTAINERS_CONF_OVERRIDE",
  "CONTAINERS_STORAGE_CONF",
  "PODMAN_CONNECTIONS_CONF",
  "STORAGE_DRIVER",
  "SSH_AUTH_SOCK",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_RUNTIME_DIR",
];

/** A path counts from the folder of the first command, and the login begins in another one. */
const isPath = (name: string): boolean => /_(?:CONF|CONFIG|OVERRIDE|PATH|SSHKEY)$/.test(name);

/** sshd itself is only the second choice: without a name server it keeps each login waiting. */
const choice = 'command -v bash >/dev/null && exec bash -c "$0"; exec /usr/sbin/sshd -i';

/**
 * The variables are words of the command, so that it also works in shells without them, and after
 * `docker context use`. An address with a password is none: the command would be printed, and every
 * user sees its words. There it needs the variable of the shell.
 */
export function passageThrough(
  { name, title }: Pick<EngineKind, "name" | "title">,
  environment: Environment,
): PassageTo {
  const places = placeNames.flatMap((place) => {
    const value = variable(environment, place);
    if (value === undefined || isSecretAddress(value)) return [];
    return [`${place}=${isPath(place) ? resolve(value) : value}`];
  });
  const isGiven = (place: string): boolean => variable(environment, place) !== undefined;
  if (name === "docker" && !isGiven("DOCKER_HOST")) {
    // Docker would prefer the address of the shell in which the command runs.
    places.unshift("-u", "DOCKER_HOST");
    if (!isGiven("DOCKER_CONTEXT"))
      places.push(`DOCKER_CONTEXT=${dockerContext(environment) ?? "default"}`);
  }
  const command = [...(places.length === 0 ? [] : ["env", ...places]), name];
  const onNode = ["/bin/sh", "-c", choice, shellText(relay).trim()];
  return (id) => ({
    title,
    argv: [...command, "exec", "--interactive", "--user=0:0", id, ...onNode],
    environment: sshEnvironment(environment),
  });
}

export const choosingVariables: Readonly<Record<EngineName, readonly string[]>> = {
  docker: ["DOCKER_HOST", "DOCKER_CONTEXT"],
  podman: ["CONTAINER_HOST", "CONTAINER_CONNECTION"],
};

/**
 * How the user leads the engine's program to another engine than its usual one, such as
 * `DOCKER_CONTEXT=away`; else empty. Holds no secret.
 */
export function engineAddress(
  { name }: Pick<EngineKind, "name">,
  environment: Environment,
): string {
  for (const choosing of choosingVariables[name]) {
    const value = variable(environment, choosing);
    if (value !== undefined)
      return `${choosing}=${isSecretAddress(value) ? maskUrl(value) : value}`;
  }
  const context = name === "docker" ? dockerContext(environment) : undefined;
  return context === undefined ? "" : `DOCKER_CONTEXT=${context}`;
}

/** The context that `docker context use` chose; undefined for the default one. */
export function dockerContext(environment: Environment): string | undefined {
  try {
    const folder =
      variable(environment, "DOCKER_CONFIG") ?? join(homeFolder(environment), ".docker");
    const { currentContext } =
      anyMapping(parseJson(readFileSync(join(folder, "config.json"), "utf8"))) ?? {};
    return typeof currentContext !== "string" || ["", "default"].includes(currentContext)
      ? undefined
      : currentContext;
  } catch {
    // Without a home folder or such a file, nothing was chosen.
    return undefined;
  }
}

/** The interfaces of the network that this program is in, bridges without a container included. */
export function ownInterfaces(): ReadonlySet<string> {
  try {
    const lines = readFileSync("/proc/net/dev", "utf8").split("\n");
    return new Set(lines.flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []));
  } catch {
    // Other systems have no such file, and run engines in virtual machines.
    return new Set();
  }
}
