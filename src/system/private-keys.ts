/** More characters than the largest key has. */
const longestKey = 32_000;
const keyMark = /-----(BEGIN|END) (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g;
/** What begins with such a mark, or that of a certificate, in base64 once more, such as in a kubeconfig. */
const encodedMark =
  /LS0tLS1CRUdJTi[A-Za-z0-9+/]{0,32000}={0,2}(?:\r?\n[A-Za-z0-9+/]{60,76}={0,2}){0,500}/g;
const masked = "***";

/**
 * Masks the contents of all private keys in a text, whatever stands in front of their lines. The
 * beginning or the end of a key may be missing: then what can belong to it is masked. Takes linear
 * time.
 */
export function withoutPrivateKeys(given: string): string {
  const text = given.replaceAll(encodedMark, (found) => (isEncodedKey(found) ? masked : found));
  const parts: string[] = [];
  let [at, isInside] = [0, false];
  for (const { 0: mark, 1: kind, index } of text.matchAll(keyMark)) {
    if (isInside) parts.push(masked);
    const from = isInside ? Math.min(index, at + longestKey) : at;
    const start = kind === "END" ? startOfKeyLines(text, from, index) : index;
    parts.push(text.slice(from, start), start < index ? masked : "", mark);
    [at, isInside] = [index + mark.length, kind === "BEGIN"];
  }
  if (isInside) parts.push(masked);
  return [...parts, text.slice(isInside ? at + longestKey : at)].join("");
}

const isEncodedKey = (text: string): boolean =>
  Buffer.from(text.slice(0, 200), "base64").toString("latin1").search(keyMark) === 0;

/** The last line of a key may have few characters. The others have 64 or more. */
const leastInLine = 32;
const lineOfKey = /[A-Za-z0-9+/=]{32}/;

/** Where the lines begin that belong to a key which ends there. What is in front of them, such as the time, stays. */
function startOfKeyLines(text: string, from: number, end: number): number {
  const least = Math.max(from, end - longestKey);
  const lines = text.slice(least, end).split("\n");
  const sameLine = lines.pop() ?? "";
  let start = end;
  let lineEnd = end - sameLine.length;
  // A key in one line, with other signs in place of its line breaks.
  const inLine = sameLine.search(lineOfKey);
  if (inLine >= 0) return lineEnd + inLine;
  for (const [index, line] of lines.toReversed().entries()) {
    lineEnd -= 1;
    const length = lengthOfBase64(line);
    if (length < (index === 0 ? 1 : leastInLine)) break;
    start = lineEnd - length;
    lineEnd -= line.length;
  }
  return start;
}

/** How many characters at the end of the line may be a key's. */
function lengthOfBase64(line: string): number {
  let length = 0;
  while (length < line.length && /[A-Za-z0-9+/=\r]/.test(line.at(-1 - length) ?? "")) length += 1;
  return length;
}
