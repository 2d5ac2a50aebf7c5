import type { Checked } from "../../system/checked.ts";
import { problem } from "../../system/checked.ts";
import { errorCode } from "../../system/error-code.ts";
import { readBytes } from "../../system/files/read-text.ts";
import { isMapping } from "../../system/is-mapping.ts";
import type { Configuration } from "./configuration.ts";

/**
 * Reads the file of `--extra-config`. Problems name the file, and line and column for bad YAML, but quote nothing from it: it may hold a license. It
 * reads and writes YAML 1.1, like the artifacts, so that `yes` or `010` keep the meaning that their documentation gives them.
 */
export async function readExtraConfiguration(path: string, signal: AbortSignal): Promise<Checked<Configuration>> {
  const text = await readText(path, signal);
  return text.problems === undefined ? parseConfiguration(text.value, path) : text;
}

/**
 * Returns the configuration as the text of `config.yaml`. It quotes strings and escapes unprintable characters, because parsers disagree on `1:30`,
 * `=` or a bare control character. It folds no line, because the reader may not be a full YAML parser.
 */
export async function renderConfiguration(configuration: Configuration): Promise<string> {
  const { stringify } = await import("yaml");
  const text = stringify(configuration, {
    version: "1.1",
    lineWidth: 0,
    aliasDuplicateObjects: false,
    defaultStringType: "QUOTE_DOUBLE",
    defaultKeyType: "PLAIN",
    doubleQuotedAsJSON: true,
  });
  return text.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escaped);
}

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A real configuration has a few kilobytes. The parser's time for some texts grows with the square of their length. */
const mostBytes = 256 * 1024;
const mostProblems = 20;

/** Exported for texts from elsewhere. `path` is the name that problems show. */
export async function parseConfiguration(text: string, path: string): Promise<Checked<Configuration>> {
  const { isScalar, LineCounter, parseDocument, visit } = await import("yaml");
  if (text.length > mostBytes) return problem(`${path}: ${reasons["EFBIG"]}`);
  const lineCounter = new LineCounter();
  const repeated: { readonly pos: readonly [number, ...unknown[]]; readonly message: string }[] = [];
  try {
    // The parser's own search for repeated keys compares each key with all others.
    const options = { version: "1.1", intAsBigInt: true, prettyErrors: false, uniqueKeys: false, lineCounter } as const;
    const document = parseDocument(text, options);
    visit(document, {
      Map: (_key, { items }) => {
        const keys = items.map(({ key }) => key).filter(isScalar);
        const seen = new Set<unknown>();
        for (const { value, range } of keys) {
          if (seen.has(value)) repeated.push({ pos: [range?.[0] ?? 0], message: "Map keys must be unique" });
          seen.add(value);
        }
      },
    });
    const faults = [...document.errors, ...document.warnings, ...repeated].slice(0, mostProblems);
    if (faults.length > 0) {
      const where = ({ pos }: (typeof faults)[number]): string => place(lineCounter.linePos(pos[0]));
      return { problems: faults.map((fault) => `${path}${where(fault)}: ${fault.message}`) };
    }
    const value: unknown = document.toJS({ reviver: (_key, found: unknown) => plain(found) }) ?? {};
    return isMapping(value) ? { value } : problem(`${path}: the top level must be a mapping (key: value).`);
  } catch (error) {
    if (error instanceof RangeError) return problem(`${path}: it is nested too deeply.`);
    return problem(`${path}: cannot resolve its anchors and aliases.`);
  }
}

const place = ({ line, col }: { readonly line: number; readonly col: number }): string => `:${line}:${col}`;

/** Integers of any length stay exact; those that a number can hold become numbers. */
const plain = (value: unknown): unknown =>
  typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;

async function readText(path: string, signal: AbortSignal): Promise<Checked<string>> {
  try {
    return { value: new TextDecoder("utf-8", { fatal: true }).decode(await readBytes(path, mostBytes, signal)) };
  } catch (error) {
    signal.throwIfAborted();
    const code = errorCode(error);
    return problem(`${path}: ${reasons[code ?? ""] ?? `cannot be read (${code ?? "no code"}).`}`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "the file does not exist.",
  ENOTDIR: "the file does not exist.",
  EISDIR: "is a folder, not a file.",
  EACCES: "this user may not read it.",
  EFBIG: `it is larger than ${mostBytes / 1024} KiB.`,
  ERR_ENCODING_INVALID_ENCODED_DATA: "is not UTF-8 text.",
};
