/** What the runtime puts in place of bytes that aren't UTF-8. */
export const replacement = "\ufffd";

/** The text that these bytes are; undefined if they aren't UTF-8. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
