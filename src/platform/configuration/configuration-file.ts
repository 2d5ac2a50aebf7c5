import type * as Yaml from "yaml";
import { outside } from "../../outside-text.ts";
import { isMapping } from "../../model/reader.ts";
import { type Checked, problem } from "../../system/checked.ts";
import { errorCode } from "../../system/files/private-file.ts";
import { readBytes } from "../../system/files/read-text.ts";
import type { Configuration } from "./configuration.ts";

/**
 * Reads the file of `--extra-config`. Problems name the file, and line and column for bad YAML, but quote nothing from it: it may hold a license. It
 * reads and writes YAML 1.1, like the artifacts, so that `yes` or `010` keep the meaning that their documentation gives them.
 */
export async function readExtraConfiguration(path: string, signal: AbortSignal): Promise<Checked<Configuration>> {
  const text = await readConfigurationText(path, signal);
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
  if (text.length > mostBytes) return problem(`${path}: ${reasons["EFBIG"]}`);
  const yaml = await import("yaml");
  const lineCounter = new yaml.LineCounter();
  // The parser's own search for repeated keys compares each key with all others.
  const options = { version: "1.1", intAsBigInt: true, prettyErrors: false, uniqueKeys: false, lineCounter } as const;
  const document = yaml.parseDocument(text, options);
  const faults = [...document.errors, ...document.warnings].map(({ pos, code, message }) => ({
    at: pos[0],
    message: code === "MULTIPLE_DOCS" ? "a second document begins here; put all settings into one" : message,
  }));
  const found = faults.length > 0 ? faults : repeatedKeys(yaml, document.contents);
  if (found.length > 0) {
    const shown = found.slice(0, mostProblems);
    return {
      problems: shown.map(({ at, message }) => `${path}${place(lineCounter.linePos(at))}: ${outside(message)}`),
    };
  }
  return mapping(() => document.toJS({ reviver: (_key, value: unknown) => plain(value) }) as unknown, path);
}

interface Fault {
  readonly at: number;
  readonly message: string;
}

function repeatedKeys(
  { isMap, isPair, isScalar, isSeq }: Pick<typeof Yaml, "isMap" | "isPair" | "isScalar" | "isSeq">,
  contents: unknown,
): readonly Fault[] {
  const faults: Fault[] = [];
  const pending = [contents];
  for (const node of pending) {
    if (isPair(node)) pending.push(node.key, node.value);
    else if (isSeq(node) || isMap(node)) for (const item of node.items) pending.push(item);
    if (!isMap(node)) continue;
    const seen = new Set<unknown>();
    for (const { key } of node.items) {
      if (!isScalar(key)) continue;
      if (seen.has(key.value)) faults.push({ at: key.range?.[0] ?? 0, message: "Map keys must be unique" });
      seen.add(key.value);
    }
  }
  return faults;
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

async function readConfigurationText(path: string, signal: AbortSignal): Promise<Checked<string>> {
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
