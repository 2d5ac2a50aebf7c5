import { outside } from "../../outside-text.ts";
import { readFile } from "node:fs/promises";
import type { Checked } from "../../system/checked.ts";
import { problem } from "../../system/checked.ts";
import { errorCode } from "../../system/error-code.ts";
import { isMapping } from "../../system/is-mapping.ts";
import type { Configuration } from "./configuration.ts";

/**
 * Reads the file of `--extra-config`. Problems name the file, and line and column for bad YAML, but quote nothing from it: it may hold a license. It
 * reads and writes YAML 1.1, like the artifacts, so that `yes` or `010` keep the meaning that their documentation gives them.
 */
export async function readExtraConfiguration(path: string): Promise<Checked<Configuration>> {
  const text = await readText(path);
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

/** Exported for the library, whose callers have text. `path` is the name that problems show. */
export async function parseConfiguration(text: string, path: string): Promise<Checked<Configuration>> {
  const { LineCounter, parseDocument } = await import("yaml");
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { version: "1.1", intAsBigInt: true, prettyErrors: false, lineCounter });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0)
    return {
      problems: faults.map((fault) => `${path}${place(lineCounter.linePos(fault.pos[0]))}: ${outside(fault.message)}`),
    };
  return mapping(() => document.toJS({ reviver: (_key, value: unknown) => plain(value) }) as unknown, path);
}

function mapping(read: () => unknown, path: string): Checked<Configuration> {
  try {
    const value = read() ?? {};
    if (isMapping(value)) return { value };
    return problem(`${path}: the top level must be a mapping (key: value).`);
  } catch {
    return problem(`${path}: cannot resolve its anchors and aliases.`);
  }
}

const place = ({ line, col }: { readonly line: number; readonly col: number }): string => `:${line}:${col}`;

/** Integers of any length stay exact; those that a number can hold become numbers. */
const plain = (value: unknown): unknown =>
  typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;

async function readText(path: string): Promise<Checked<string>> {
  try {
    return { value: new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path)) };
  } catch (error) {
    const code = errorCode(error);
    return problem(`${path}: ${reasons[code ?? ""] ?? `cannot be read (${code ?? "no code"}).`}`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "the file does not exist.",
  ENOTDIR: "the file does not exist.",
  EISDIR: "is a folder, not a file.",
  EACCES: "this user may not read it.",
  ERR_ENCODING_INVALID_ENCODED_DATA: "is not UTF-8 text.",
};
