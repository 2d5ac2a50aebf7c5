import { ClusterError } from "../../errors.ts";
import type { Environment } from "../../system/environment.ts";

/** Returns the path of this machine's `ssh`. Fails as `machine-not-set-up` if there is none. */
export function findSsh(environment: Environment): string {
  const path = Bun.which("ssh", { PATH: environment["PATH"] ?? "" });
  if (path !== null) return path;
  throw new ClusterError("machine-not-set-up", "There is no ssh on this machine's PATH.", {
    hint: "Install OpenSSH's client (Debian and Ubuntu: openssh-client; Fedora: openssh-clients).",
  });
}
