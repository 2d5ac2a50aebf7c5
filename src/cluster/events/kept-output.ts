/** The end of a command's output, as its event and the report show it. */
import { maskedPrintable } from "../../system/printable.ts";
import { withoutPrivateKeys } from "../../system/private-keys.ts";

/** So many bytes are looked through for secrets, of which the last lines are kept. */
const mostBytes = 64 * 1024;
/** Together much less than the longest event, also where JSON escapes every character. */
const [mostLines, longestLine] = [60, 300];

export interface NodeOutput {
  /** Its name begins each line; absent: there is only one. */
  readonly node?: string | undefined;
  readonly text: string;
}

/**
 * Keeps the end of what arrives, whatever stream it comes from; nothing unless `keeps`, for output
 * in which secrets may be unknown.
 */
export function createKeptOutput(keeps: boolean) {
  const chunks: Buffer[] = [];
  const kept = { bytes: 0, isCut: false };
  return {
    add: (chunk: Uint8Array): void => {
      if (!keeps) return;
      // A copy, because a part of a buffer keeps all of it in memory.
      chunks.push(Buffer.from(chunk.subarray(-mostBytes)));
      kept.bytes += chunk.length;
      for (let first = chunks[0]; first !== undefined; first = chunks[0]) {
        if (kept.bytes - first.length < mostBytes) break;
        chunks.shift();
        kept.bytes -= first.length;
        kept.isCut = true;
      }
    },
    /** Without the rest of a line whose beginning is lost, which may be the rest of a secret. */
    outputs: (): readonly NodeOutput[] => {
      const text = Buffer.concat(chunks).toString("utf8");
      return [{ text: kept.isCut ? text.slice(text.indexOf("\n") + 1) : text }];
    },
  };
}

/**
 * Returns the last lines of all outputs, masked and without terminal codes. Several outputs have
 * equal shares, the first ones if there are too many.
 */
export function lastLines(
  outputs: readonly NodeOutput[],
  mask: (text: string) => string,
): readonly string[] {
  const given = outputs.filter(({ text }) => text.trim() !== "").slice(0, mostLines);
  const share = Math.floor(mostLines / Math.max(1, given.length));
  return given.flatMap(({ node, text }) => {
    const last = text.trimEnd().slice(-mostBytes).split("\n").map(lastState).join("\n");
    const lines = maskedPrintable(withoutPrivateKeys(last), mask).split("\n").slice(-share);
    const name = node === undefined ? "" : `${node}: `;
    return lines.map((line) => shortened(`${name}${line.trimEnd()}`));
  });
}

/** A program that shows its progress overwrites its line. */
const lastState = (given: string): string => {
  const line = given.endsWith("\r") ? given.slice(0, -1) : given;
  return line.slice(line.lastIndexOf("\r") + 1);
};

const shortened = (line: string): string =>
  line.length > longestLine ? `${line.slice(0, longestLine - 1).toWellFormed()}…` : line;
