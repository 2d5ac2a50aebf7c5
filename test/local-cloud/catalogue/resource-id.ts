import { createHash, randomBytes } from "node:crypto";

/** An id that is always the same for the same name, so that tests can be read: `subnet-` and 17 hex digits. */
export function fixedId(prefix: string, name: string): string {
  return `${prefix}-${createHash("sha1").update(`${prefix}/${name}`).digest("hex").slice(0, 17)}`;
}

export function newId(prefix: string): string {
  return `${prefix}-${randomBytes(9).toString("hex").slice(0, 17)}`;
}
