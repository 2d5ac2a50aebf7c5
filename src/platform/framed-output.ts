import { shellText } from "../ssh/shell-text.ts";
import frameFile from "./frame.sh" with { type: "text" };

/**
 * Transfers texts written by a node's processes in one command's output, so that no text can imitate another. Each text is a line `<name> <base64>`:
 * base64 contains neither spaces nor line breaks, and the names come from this program alone.
 */

/** The shell function `frame NAME`, which prints its stdin as one such line. */
export const frameFunction = shellText(frameFile);

const frameLine = /^([\w.-]+) ([A-Za-z0-9+/]*={0,2})$/;

/** Returns the texts by name, in the order of `names`. It skips other names, other lines, lines without their beginning, and empty texts. */
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
