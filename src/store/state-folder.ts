import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { ClusterError } from "../errors.ts";
import { ownUserId } from "../system/own-user.ts";
import type { Environment } from "../system/runtime.ts";
import { variable } from "../system/variable.ts";

/**
 * The folder for this machine's keys, known hosts and logs: `$XDG_STATE_HOME/cluster-e2e`. Throws
 * like `homeFolder`.
 */
export const stateFolder = (environment: Environment): string =>
  join(
    xdgFolder(environment, "XDG_STATE_HOME") ?? join(homeFolder(environment), ".local", "state"),
    "cluster-e2e",
  );

/**
 * The folder for files that can be fetched again, such as images: `$XDG_CACHE_HOME/cluster-e2e`.
 * Throws like `homeFolder`.
 */
export const cacheFolder = (environment: Environment): string =>
  join(
    xdgFolder(environment, "XDG_CACHE_HOME") ?? join(homeFolder(environment), ".cache"),
    "cluster-e2e",
  );

/**
 * Returns the user's home folder: `$HOME` or, if that isn't set, the one that the system knows.
 * Throws `machine-not-set-up` if there is none, or if it isn't absolute: files would otherwise end
 * up in the current folder, which may be somebody else's checkout.
 */
export function homeFolder(environment: Environment): string {
  const path = variable(environment, "HOME") ?? knownHome();
  if (!isAbsolute(path)) throw notAbsolute("HOME", path);
  return path;
}

/** In a container, a user is often only a number. */
function knownHome(): string {
  try {
    return homedir();
  } catch (cause) {
    throw new ClusterError(
      "machine-not-set-up",
      `There is no home folder for keys and logs: HOME is not set, and user ${ownUserId()} has no entry in the password file.`,
      {
        hint: "Set HOME to a folder that you can write to, such as: export HOME=$(mktemp -d). Keep the folder for as long as the clusters, whose keys are in it.",
        facts: { variable: "HOME" },
        cause,
      },
    );
  }
}

/** The XDG specification ignores relative paths, but then keys would be stored elsewhere than intended. */
function xdgFolder(environment: Environment, name: string): string | undefined {
  const path = variable(environment, name);
  if (path !== undefined && !isAbsolute(path)) throw notAbsolute(name, path);
  return path;
}

const notAbsolute = (name: string, path: string): ClusterError =>
  new ClusterError(
    "machine-not-set-up",
    `${name} is the relative path ${JSON.stringify(path)}, so files would end up in the current folder.`,
    {
      hint: `Set ${name} to an absolute path${name === "HOME" ? ", or unset it." : ", or unset it to use your home folder."}`,
      facts: { variable: name },
    },
  );
