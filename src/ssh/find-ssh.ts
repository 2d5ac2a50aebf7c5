import { readFileSync } from "node:fs";
import { ClusterError } from "../errors.ts";
import { ownUserId } from "../system/own-user.ts";
import { minimalEnvironment } from "../system/processes/run-program.ts";
import type { Environment } from "../system/runtime.ts";

export const sshInstallation =
  "Install the OpenSSH client (Debian, Ubuntu and Alpine: openssh-client; Fedora: openssh-clients; macOS includes it).";

/** Returns the path of `ssh`. Throws `machine-not-set-up` if there is none, or if it refuses to work for this user. */
export function findSsh(environment: Environment): string {
  const path = Bun.which("ssh", { PATH: minimalEnvironment(environment)["PATH"] ?? "" });
  if (path === null)
    throw new ClusterError("machine-not-set-up", "There is no ssh on this computer's PATH.", {
      hint: sshInstallation,
    });
  const refusal = refusalOfUser(path, environment);
  if (refusal === undefined) return path;
  throw new ClusterError(
    "machine-not-set-up",
    `ssh does not work for user ${ownUserId()}, who has no entry in the password file: ${refusal}.`,
    { hint: nameAdvice },
  );
}

const nameAdvice =
  'Give the user a name, as root or where the file is writable: echo "me:x:$(id -u):$(id -g)::$HOME:/bin/sh" >>/etc/passwd. Or use a user with a name.';

/**
 * OpenSSH's programs don't even print their version for a user who is only a number, as users of
 * containers often are.
 */
function refusalOfUser(path: string, environment: Environment): string | undefined {
  if (hasEntry()) return undefined;
  // The user may still be known to a directory such as LDAP, or to a library that the environment names.
  const { stderr } = Bun.spawnSync([path, "-V"], {
    env: { ...minimalEnvironment(environment) },
    stdin: "ignore",
    timeout: 5_000,
  });
  return /^No user exists for uid \d+/m.exec(stderr.toString())?.[0];
}

/** Where there is no such file, OpenSSH's answer counts. */
function hasEntry(): boolean {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return lines.some((line) => line.split(":")[2] === String(ownUserId()));
  } catch {
    return false;
  }
}
