import { ClusterError } from "../errors.ts";
import { targetOf } from "./destination.ts";
import type { Destination } from "./pool.ts";

export interface SshConfigFiles {
  /** Absolute paths. */
  readonly identityFile: string;
  readonly knownHostsFile: string;
}

/**
 * A block of OpenSSH configuration with one `Host` per node reference, for `ssh -F` and for people's own configuration. Nodes without an address
 * are left out.
 */
export function renderSshConfig(nodes: readonly Destination[], files: SshConfigFiles): string {
  return nodes
    .filter(({ ssh }) => ssh.host !== "")
    .map((node) => hostBlock(node, files))
    .join("\n");
}

function hostBlock(node: Destination, { identityFile, knownHostsFile }: SshConfigFiles): string {
  const { name, host, port, user } = targetOf(node);
  const settings = [
    ["HostName", host],
    ["Port", String(port)],
    ["User", user],
    ["IdentityFile", quotedPath(identityFile)],
    ["IdentitiesOnly", "yes"],
    // An agent would only be asked in vain, and one that hangs would hang us.
    ["IdentityAgent", "none"],
    ["PreferredAuthentications", "publickey"],
    ["HostKeyAlgorithms", "ssh-ed25519"],
    // Newer versions' own first choice, sntrup761, takes 60 ms of a login where it was built without optimisation, as in Debian 12.
    [
      "KexAlgorithms",
      "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,diffie-hellman-group-exchange-sha256",
    ],
    ["StrictHostKeyChecking", "yes"],
    ["UserKnownHostsFile", quotedPath(knownHostsFile)],
    // Not `none`: older versions would take that for a file's name.
    ["GlobalKnownHostsFile", "/dev/null"],
    ["CheckHostIP", "no"],
    ["UpdateHostKeys", "no"],
    ["ConnectTimeout", "15"],
    ["ServerAliveInterval", "10"],
    ["LogLevel", "ERROR"],
  ];
  return [`Host ${name}`, ...settings.map(([key, value]) => `  ${key} ${value}`), ""].join("\n");
}

/** ssh expands `%` in these paths; some versions also `\` and `${…}`, others know no way to write those. */
function quotedPath(path: string): string {
  if (/["\\\n]|\$\{/.test(path)) {
    throw new ClusterError("machine-not-set-up", `ssh can't be given the path ${path}.`, {
      hint: "Set XDG_STATE_HOME to a folder without quotes, backslashes and ${ in its path.",
    });
  }
  return `"${path.replaceAll("%", "%%")}"`;
}
