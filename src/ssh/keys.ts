import { type KeyObject, createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import type { ParsedKey } from "ssh2";

export interface KeyPair {
  /** In a format that OpenSSH reads, with a newline at the end. */
  readonly privateKey: string;
  /** `<type> <base64> <comment>`, without a newline; the comment may be missing. */
  readonly publicKey: string;
}

const keyType = "ssh-ed25519";

/**
 * Generates an ed25519 pair in OpenSSH's own format. It doesn't use `generateKeyPairSync` of ssh2 1.17, which drops
 * leading zero bytes, so that one key in 300 can't be read back ("Malformed OpenSSH private key").
 */
export function generateKeyPair(comment: string): KeyPair {
  return ed25519Pair(generateKeyPairSync("ed25519").privateKey, comment);
}

/** Writes an ed25519 key in OpenSSH's own format. */
export function ed25519Pair(key: KeyObject, comment: string): KeyPair {
  const pair = key.export({ format: "jwk" });
  const seed = Buffer.from(pair.d ?? "", "base64url");
  const point = Buffer.from(pair.x ?? "", "base64url");
  const publicKey = Buffer.concat([wireString(keyType), wireString(point)]);
  return {
    privateKey: pem(
      "OPENSSH PRIVATE KEY",
      privateKeyFile(publicKey, privateSection(seed, point, comment)).toString("base64"),
    ),
    publicKey: `${keyType} ${publicKey.toString("base64")} ${comment}`.trimEnd(),
  };
}

function privateSection(seed: Buffer, point: Buffer, comment: string): Buffer {
  const check = randomBytes(4);
  const section = Buffer.concat([
    check,
    check,
    wireString(keyType),
    wireString(point),
    wireString(Buffer.concat([seed, point])),
    wireString(comment),
  ]);
  const padding = Uint8Array.from(
    { length: (8 - (section.length % 8)) % 8 },
    (_, index) => index + 1,
  );
  return Buffer.concat([section, padding]);
}

/** https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key */
function privateKeyFile(publicKey: Buffer, section: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from("openssh-key-v1\0"),
    wireString("none"),
    wireString("none"),
    wireString(""),
    wireNumber(1),
    wireString(publicKey),
    wireString(section),
  ]);
}

/** Writes base64 between the two marks, in lines of the length that each format has. */
export function pem(label: string, base64: string): string {
  const lines = base64.match(label.startsWith("OPENSSH") ? /.{1,70}/g : /.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

/** The longest keys in use, RSA with 16,384 bits, have 13 kB. The parser needs quadratic time for some texts. */
export const longestKey = 32 * 1024;

/**
 * Returns the key that a text holds, or an Error if it holds none. `utils` is only on ssh2's default export: Node
 * doesn't find it among the named exports of a CommonJS module.
 */
export async function parseKey(text: string): Promise<ParsedKey | Error> {
  if (text.length > longestKey) return new Error("it is longer than any key");
  const { default: ssh2 } = await import("ssh2");
  return ssh2.utils.parseKey(text);
}

/** Encodes a string for SSH: its length as four bytes, then its bytes (RFC 4251, section 5). */
function wireString(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([wireNumber(bytes.length), bytes]);
}

function wireNumber(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Returns `SHA256:…` of a public key in wire format, as `ssh-keygen -l` prints it. */
export function fingerprint(key: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replaceAll("=", "")}`;
}

/**
 * Returns the wire format of a public key line (`ssh-ed25519 AAAA… comment`); undefined if it isn't
 * a key of this type.
 */
export function readPublicKey(line: string, type: string): Buffer | undefined {
  const [name, base64] = line.trim().split(/\s+/);
  if (name !== type || base64 === undefined || !/^[A-Za-z0-9+/]+=*$/.test(base64)) return undefined;
  const key = Buffer.from(base64, "base64");
  return key.subarray(0, 4 + type.length).equals(wireString(type)) ? key : undefined;
}
