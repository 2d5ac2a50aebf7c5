import { createHash } from "node:crypto";

/** Encodes a string for SSH: its length as four bytes, then its bytes (RFC 4251, section 5). */
export function wireString(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([wireNumber(bytes.length), bytes]);
}

export function wireNumber(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Returns `SHA256:…` of a public key in wire format, as `ssh-keygen -l` prints it. */
export function fingerprint(key: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replaceAll("=", "")}`;
}

/** Returns the wire format of a public key line (`ssh-ed25519 AAAA… comment`); undefined if it isn't a key of this type. */
export function readPublicKey(line: string, type: string): Buffer | undefined {
  const [name, base64] = line.trim().split(/\s+/);
  if (name !== type || base64 === undefined || !/^[A-Za-z0-9+/]+=*$/.test(base64)) return undefined;
  const key = Buffer.from(base64, "base64");
  return key.subarray(0, 4 + type.length).equals(wireString(type)) ? key : undefined;
}
