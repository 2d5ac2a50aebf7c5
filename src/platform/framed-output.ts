/**
 * Texts from a node that the node's processes have written, brought here in one command's output so that no text can pose as another: each is a
 * line `<name> <base64>`, whose alphabet has neither spaces nor line breaks, and names come from this program alone.
 */

/** A shell function `frame NAME`: prints its stdin as one such line. */
export const frameFunction = `frame() { printf '%s ' "$1"; base64 | tr -d '\\n'; echo; }`;

const frameLine = /^([\w.-]+) ([A-Za-z0-9+/]*={0,2})$/;

/** The texts by name, in the order of `names`; other names, other lines and lines without their beginning are passed over, and empty texts left out. */
export function parseFrames<Name extends string>(stdout: string, names: readonly Name[]): ReadonlyMap<Name, string> {
  const found = new Map<string, string>();
  for (const line of stdout.split("\n")) {
    const [, name, encoded] = frameLine.exec(line) ?? [];
    if (name !== undefined && encoded !== undefined && !found.has(name)) found.set(name, encoded);
  }
  return new Map(
    names.flatMap((name): (readonly [Name, string])[] => {
      const encoded = found.get(name) ?? "";
      return encoded === "" ? [] : [[name, Buffer.from(encoded, "base64").toString("utf8")]];
    }),
  );
}
