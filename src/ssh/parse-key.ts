import type { ParsedKey } from "ssh2";

/**
 * Returns the key that a text holds, or an Error if it holds none. `utils` is only on ssh2's default export: Node doesn't find it among the
 * named exports of a CommonJS module.
 */
export async function parseKey(text: string): Promise<ParsedKey | Error> {
  const { default: ssh2 } = await import("ssh2");
  return ssh2.utils.parseKey(text);
}
