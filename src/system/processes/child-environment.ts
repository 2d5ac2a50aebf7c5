import type { Environment } from "../environment.ts";

/** What programs need that only work for us: where programs, libraries and temporary files are, and who and in which language the user is. */
const neededNames = /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+|(?:DY)?LD_LIBRARY_PATH)$/;

/** Credentials of this program's clouds, and what takes over an executable that Bun compiled. */
const secretNames = /^(?:CLOUD_|BUN_OPTIONS$|BUN_BE_BUN$)/;

/**
 * For a program that doesn't need the user's settings. Anyone who takes it over, such as a guest that escapes from its virtual machine, finds no
 * credentials in it.
 */
export function minimalEnvironment(environment: Environment): Environment {
  return filtered(environment, (name) => neededNames.test(name));
}

/** For a program with settings and credentials of its own in the environment, such as a container engine and what it asks for registry logins. */
export function environmentWithoutSecrets(environment: Environment): Environment {
  return filtered(environment, (name) => !secretNames.test(name));
}

/** For programs that every system has. */
export const systemEnvironment = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C" } as const;

function filtered(environment: Environment, isKept: (name: string) => boolean): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isKept(name)));
}
