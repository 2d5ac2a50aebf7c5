/** The end of a command's output, as its event and the report show it. */
import { createOutputTail } from "../../ssh/connection/command-output.ts";
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
  const tail = createOutputTail(mostBytes);
  const seen = { bytes: 0 };
  return {
    add: (chunk: Uint8Array): void => {
      if (!keeps) return;
      seen.bytes += chunk.length;
      // In this encoding each byte is a character.
      tail.add(Buffer.from(chunk.subarray(-mostBytes)).toString("latin1"));
    },
    outputs: (): readonly NodeOutput[] => {
      const text = Buffer.from(tail.text(), "latin1").toString("utf8");
      return [{ text: seen.bytes > mostBytes ? withoutFirstLine(text) : text }];
    },
  };
}

/** The first line of a text whose beginning is lost may begin with the rest of a secret. */
function withoutFirstLine(text: string): string {
  const end = text.search(/[\r\n]/);
  return end === -1 ? "" : text.slice(end + 1);
}

/** Returns the end of a text, of which no more than `limit` characters were kept, in whole lines. */
export const wholeLines = (text: string, limit: number = mostBytes): string =>
  text.length < limit ? text : withoutFirstLine(text.slice(-limit));

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
    const last = wholeLines(text.trimEnd()).split("\n").map(lastState).join("\n");
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
