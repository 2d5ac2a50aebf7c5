import { createHash, randomBytes } from "node:crypto";

/** Derives an id from a name, so that ids in tests are readable and stable: `subnet-` and 17 hex digits. */
export function fixedId(prefix: string, name: string): string {
  return `${prefix}-${createHash("sha1").update(`${prefix}/${name}`).digest("hex").slice(0, 17)}`;
}

export function newId(prefix: string): string {
  return `${prefix}-${randomBytes(9).toString("hex").slice(0, 17)}`;
}
