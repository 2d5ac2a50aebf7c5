import { statSync } from "node:fs";
import { ClusterError, messageOf } from "../errors.ts";
import type { Passage } from "../model/cluster-record.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { readOwnTextIfThere } from "../system/files/read-text.ts";
import { type Destination, targetOf } from "./connection/connection.ts";
import { readPublicKey } from "./keys.ts";
import { quote } from "./shell-text.ts";

/** The known_hosts file of one cluster, with ed25519 keys only. `~/.ssh/known_hosts` is never touched. */
export interface KnownHosts {
  readonly path: string;
  /** Returns the key, in wire format, that this host must present; undefined if none was pinned. */
  expected(host: string, port: number): Promise<Buffer | undefined>;
  /** Resolves when the key is stored on disk. Replaces a key pinned earlier for the same host and port. */
  pin(host: string, port: number, key: Buffer): Promise<void>;
}

/**
 * Many nodes may pin concurrently. Callers that arrive while the file is being written share the next write, so that
 * 300 nodes cost a few flushes instead of 300. Only one process at a time writes a cluster's file: the one that creates
 * the cluster.
 */
export function createKnownHosts(path: string): KnownHosts {
  const pinned = new Map<string, Buffer>();
  const known = { version: "" };
  const writing: {
    isUnderway: boolean;
    current?: Promise<void> | undefined;
    next?: Promise<void>;
  } = {
    isUnderway: false,
  };

  const load = async (): Promise<void> => {
    const version = fileVersion(path);
    if (version === known.version) return;
    for (const [name, key] of parseKnownHosts((await readOwnTextIfThere(path)) ?? ""))
      if (!pinned.has(name)) pinned.set(name, key);
    known.version = version;
  };
  const write = async (): Promise<void> => {
    await load();
    writing.isUnderway = true;
    try {
      await writePrivateFile(path, knownHostsText(pinned));
      known.version = fileVersion(path);
    } catch (error) {
      throw notWritten(path, error);
    } finally {
      writing.isUnderway = false;
    }
  };
  const writeNext = async (): Promise<void> => {
    // A failure of the previous write goes to the callers that wait for that write.
    await writing.current?.catch(() => {});
    writing.current = writing.next;
    delete writing.next;
    await write();
  };

  return {
    path,
    expected: async (host, port) => {
      const name = hostName(host, port);
      // While this process writes the file, it knows all that is in it, and hundreds of nodes may be asked about.
      if (!pinned.has(name) && !writing.isUnderway) await load();
      return pinned.get(name);
    },
    pin: async (host, port, key) => {
      pinned.set(hostName(host, port), key);
      writing.next ??= writeNext();
      await writing.next;
    },
  };
}

const keyType = "ssh-ed25519";

/** The form in which OpenSSH looks up a host. */
export const hostName = (host: string, port: number): string =>
  port === 22 ? host : `[${host}]:${port}`;

/** Matches what `hostName` returns, and nothing that OpenSSH reads as a marker, a pattern or a list. */
const hostShape = /^[A-Za-z0-9.:-]+$|^\[[A-Za-z0-9.:-]+\]:\d{1,5}$/;

/** Returns the text of such a file, from keys in wire format by `hostName`. */
export function knownHostsText(keys: ReadonlyMap<string, Buffer>): string {
  return [...keys].map(([name, key]) => `${name} ${keyType} ${key.toString("base64")}\n`).join("");
}

/** Returns the keys in the text of such a file, by host. Skips lines of any other form. */
export function parseKnownHosts(text: string): [string, Buffer][] {
  return text.split("\n").flatMap((line): [string, Buffer][] => {
    const [name, ...rest] = line.trim().split(/\s+/);
    const key = readPublicKey(rest.join(" "), keyType);
    return name === undefined || !hostShape.test(name) || key === undefined ? [] : [[name, key]];
  });
}

function notWritten(path: string, error: unknown): ClusterError {
  const reason = messageOf(error);
  return new ClusterError(
    "machine-not-set-up",
    `Cannot write the cluster's host keys to ${path}: ${reason}.`,
    {
      hint: "Free some space or get write permission there, or set XDG_STATE_HOME to another folder.",
      cause: error,
    },
  );
}

/**
 * Returns a text that differs after each change, because the file is always replaced as a whole;
 * empty without a file.
 */
function fileVersion(path: string): string {
  const information = statSync(path, { throwIfNoEntry: false });
  return information === undefined
    ? ""
    : [information.ino, information.size, information.mtimeMs].join(" ");
}

interface SshConfigFiles {
  /** Absolute paths. */
  readonly identityFile: string;
  readonly knownHostsFile: string;
  /** Each node then has two more names, `master_0.ID` and `master-0.ID`, for configurations of several clusters. */
  readonly clusterId?: string;
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

function hostBlock(
  node: Destination,
  { identityFile, knownHostsFile, clusterId }: SshConfigFiles,
): string {
  const { name, host, port, user, through } = targetOf(node);
  const settings = [
    ["HostName", wordOf("address", host)],
    ["Port", wordOf("port", String(port))],
    ["User", wordOf("user", user)],
    // Where a user's own configuration includes this one, a ProxyJump or ProxyCommand for all hosts would lead elsewhere.
    ["ProxyCommand", through === undefined ? "none" : proxyCommand(through)],
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
    // Older versions would take `none` for a file name.
    ["GlobalKnownHostsFile", "/dev/null"],
    ["CheckHostIP", "no"],
    ["UpdateHostKeys", "no"],
    // It includes the server's greeting. To this computer itself, a connection takes no time: a
    // machine here may be slow.
    ["ConnectTimeout", isLoopback(host) ? "60" : "15"],
    // It also limits each answer to a login.
    ["ServerAliveInterval", "10"],
    ["ServerAliveCountMax", String(unansweredRequests(host))],
    ["LogLevel", "ERROR"],
  ];
  const names = [name, ...(clusterId === undefined ? [] : aliases(name, clusterId))];
  return [
    `Host ${names.map((each) => wordOf("reference", each)).join(" ")}`,
    ...settings.map(([key, value]) => `  ${key} ${value}`),
    "",
  ].join("\n");
}

const aliases = (name: string, clusterId: string): readonly string[] =>
  [name, name.replaceAll("_", "-")].map((each) => `${each}.${clusterId}`);

/**
 * After how many keepalive requests without an answer, one each 10 s, a node counts as lost. A
 * machine on this computer may just be slow.
 */
export const unansweredRequests = (host: string): number => (isLoopback(host) ? 6 : 3);

export const isLoopback = (host: string): boolean => /^127\.\d+\.\d+\.\d+$/.test(host);

/**
 * Records contain only plain values, but no value may ever become a second word or line, or
 * something that ssh expands.
 */
function wordOf(what: string, value: string): string {
  if (/^[A-Za-z0-9_.:][A-Za-z0-9_.:-]*$/.test(value)) return value;
  const message = `Cannot pass the ${what} ${JSON.stringify(value.slice(0, 100))} to ssh.`;
  throw new ClusterError("connection-failed", message, {
    hint: "Inspect the node's machine: somebody changed what this program had recorded about it.",
  });
}

/** The user's shell runs it, and ssh expands `%` in it. */
export const proxyCommand = ({ argv }: Passage): string => quote(argv).replaceAll("%", "%%");

/**
 * ssh expands `%` in these paths. Some versions also expand `\` and `${…}`; others have no way to
 * escape those. Throws `machine-not-set-up`.
 */
export function quotedPath(path: string): string {
  if (/["\\\p{Cc}\u2028\u2029]|\$\{/u.test(path)) {
    throw new ClusterError(
      "machine-not-set-up",
      `Cannot pass the path ${JSON.stringify(path)} to ssh.`,
      {
        hint: "Set XDG_STATE_HOME to a folder without quotes, backslashes, control characters and ${ in its path.",
      },
    );
  }
  return `"${path.replaceAll("%", "%%")}"`;
}
