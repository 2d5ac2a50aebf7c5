export interface Sum {
  readonly algorithm: "sha256" | "sha512";
  /** Lower-case hexadecimal. */
  readonly hex: string;
}

/**
 * Finds the file's sum in a publisher's list, in the format of `sha256sum` and `sha512sum` (`<sum> [*]<name>`) or of BSD's tools (`SHA256 (<name>) =
 * <sum>`).
 */
export function findSum(list: string, fileName: string): Sum | undefined {
  for (const line of list.split("\n")) {
    const [, plainHex, plainName] = /^([0-9a-f]+)\s+\*?(\S+)\s*$/i.exec(line) ?? [];
    const [, bsdName, bsdHex] = /^SHA(?:256|512) \((\S+)\) = ([0-9a-f]+)\s*$/i.exec(line) ?? [];
    const hex = (plainHex ?? bsdHex ?? "").toLowerCase();
    if ((plainName ?? bsdName)?.replace(/^\.\//, "") !== fileName) continue;
    if (hex.length === 64) return { algorithm: "sha256", hex };
    if (hex.length === 128) return { algorithm: "sha512", hex };
  }
  return undefined;
}
