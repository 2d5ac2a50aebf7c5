import { gunzipSync } from "node:zlib";
import { parse } from "yaml";

/** The parts of a machine's user data that concern logging in. */
export interface LoginSettings {
  /** The authorized keys of each user, one line each. */
  readonly users: ReadonlyMap<string, readonly string[]>;
  /** The ed25519 host key in OpenSSH's private key format; undefined if the machine generates its own. */
  readonly hostKey: string | undefined;
}

interface UserEntry {
  readonly name?: string;
  readonly ssh_authorized_keys?: readonly string[];
}

interface CloudConfig {
  readonly ssh_keys?: { readonly ed25519_private?: string };
  readonly ssh_authorized_keys?: readonly string[];
  readonly system_info?: { readonly default_user?: { readonly name?: string } };
  readonly users?: readonly (string | UserEntry)[];
}

/**
 * Parses `#cloud-config` user data, plain or compressed, like cloud-init: keys at the top level belong to the image's own user, which exists unless
 * `users` leaves out `default`. Throws on other kinds of user data.
 */
export function readLoginSettings(userData: Uint8Array, imageUser: string): LoginSettings {
  const text = decoded(userData);
  if (text.trim() === "") return { users: new Map([[imageUser, []]]), hostKey: undefined };
  if (!text.startsWith("#cloud-config"))
    throw new Error(`user data isn't #cloud-config: ${text.slice(0, 30)}`);
  const config = (parse(text) ?? {}) as CloudConfig;
  const users = new Map<string, readonly string[]>();
  for (const { name, keys } of (config.users ?? ["default"]).map((entry) =>
    userOf(entry, config, imageUser),
  )) {
    // A further entry for the image's own user adds to it.
    users.set(name, [...(users.get(name) ?? []), ...keys]);
  }
  return { users, hostKey: config.ssh_keys?.ed25519_private };
}

function userOf(entry: string | UserEntry, config: CloudConfig, imageUser: string) {
  if (typeof entry !== "string")
    return { name: entry.name ?? "", keys: entry.ssh_authorized_keys ?? [] };
  if (entry !== "default") return { name: entry, keys: [] };
  return {
    name: config.system_info?.default_user?.name ?? imageUser,
    keys: config.ssh_authorized_keys ?? [],
  };
}

function decoded(userData: Uint8Array): string {
  const isCompressed = userData[0] === 0x1f && userData[1] === 0x8b;
  return Buffer.from(isCompressed ? gunzipSync(userData) : userData).toString("utf8");
}
