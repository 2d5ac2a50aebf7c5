import { ClusterError } from "../errors.ts";
import { type Destination, targetOf } from "./connection/connection.ts";

export interface SshConfigFiles {
  /** Absolute paths. */
  readonly identityFile: string;
  readonly knownHostsFile: string;
}

/**
 * Returns a block of OpenSSH configuration with one `Host` per node reference, for `ssh -F` and for users' own
 * configuration. It skips nodes without an address.
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
    ["HostName", wordOf("address", host)],
    ["Port", wordOf("port", String(port))],
    ["User", wordOf("user", user)],
    ["IdentityFile", quotedPath(identityFile)],
    ["IdentitiesOnly", "yes"],
    // An agent is of no use here, and one that hangs would block ssh.
    ["IdentityAgent", "none"],
    ["PreferredAuthentications", "publickey"],
    ["HostKeyAlgorithms", "ssh-ed25519"],
    // Newer versions prefer sntrup761, which adds 60 ms to a login if it was built without optimisation, as in Debian
    // 12.
    [
      "KexAlgorithms",
      "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,diffie-hellman-group-exchange-sha256",
    ],
    ["StrictHostKeyChecking", "yes"],
    ["UserKnownHostsFile", quotedPath(knownHostsFile)],
    // Not `none`: older versions would take it for a file name.
    ["GlobalKnownHostsFile", "/dev/null"],
    ["CheckHostIP", "no"],
    ["UpdateHostKeys", "no"],
    ["ConnectTimeout", "15"],
    ["ServerAliveInterval", "10"],
    ["LogLevel", "ERROR"],
  ];
  return [`Host ${wordOf("reference", name)}`, ...settings.map(([key, value]) => `  ${key} ${value}`), ""].join("\n");
}

/**
 * Records contain only plain values, but no value may ever become a second word or line, or something that ssh expands.
 */
function wordOf(what: string, value: string): string {
  if (/^[A-Za-z0-9_.:][A-Za-z0-9_.:-]*$/.test(value)) return value;
  throw new ClusterError(
    "connection-failed",
    `Cannot pass the ${what} ${JSON.stringify(value.slice(0, 100))} to ssh.`,
    {
      hint: "Inspect the node's machine: somebody changed what this program had recorded about it.",
    },
  );
}

/** ssh expands `%` in these paths. Some versions also expand `\` and `${…}`; others have no way to escape those. */
function quotedPath(path: string): string {
  if (/["\\\p{Cc}\u2028\u2029]|\$\{/u.test(path)) {
    throw new ClusterError("machine-not-set-up", `Cannot pass the path ${JSON.stringify(path)} to ssh.`, {
      hint: "Set XDG_STATE_HOME to a folder without quotes, backslashes, control characters and ${ in its path.",
    });
  }
  return `"${path.replaceAll("%", "%%")}"`;
}
