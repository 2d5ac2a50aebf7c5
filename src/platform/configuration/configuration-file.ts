import { optionName } from "../../references.ts";
import { outside } from "../../outside-text.ts";
import { unicodeEscape } from "../../system/printable.ts";
import { isMapping } from "../../model/reader.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { folderProblem } from "../../system/files/private-file.ts";
import { readText, unreadableReason } from "../../system/files/read-text.ts";
import type { Configuration } from "./configuration.ts";
import { posix } from "node:path";
import { type ListedFile, listFiles } from "../../system/files/list-files.ts";
import type { Variant } from "../../model/cluster-record.ts";
import type { Environment } from "../../system/runtime.ts";
import { variable } from "../../system/variable.ts";
import { type Fault, problems, yamlFaults } from "./yaml-faults.ts";

/**
 * Reads the file of `--extra-config`. Problems name the file, and line and column for bad YAML, but
 * quote nothing from it: it may hold a license.
 */
export async function readExtraConfiguration(
  path: string,
  signal: AbortSignal,
): Promise<Checked<Configuration>> {
  const text = await readConfigurationText(path, signal);
  return text.problems === undefined ? parseConfiguration(text.value, path) : text;
}

/**
 * Returns the configuration as the text of `config.yaml`, which has the same meaning in YAML 1.1
 * and 1.2. It quotes strings and escapes unprintable characters, because parsers disagree on
 * `1:30`, `=` or a bare control character. It folds no line, because the reader may not be a full
 * YAML parser.
 */
export async function renderConfiguration(configuration: Configuration): Promise<string> {
  const { Document, visit } = await import("yaml");
  const document = new Document(configuration, {
    version: "1.1",
    aliasDuplicateObjects: false,
    // Without the tag of merges, the text `<<` gets quotes.
    customTags: (tags) => [
      exponential,
      ...tags.filter((tag) => typeof tag === "string" || tag.test?.test("<<") !== true),
    ],
  });
  visit(document, {
    Scalar: (place, node) => {
      if (typeof node.value !== "string") return;
      node.type = place === "key" && plainKey.test(node.value) ? "PLAIN" : "QUOTE_DOUBLE";
    },
  });
  const text = document.toString({ lineWidth: 0, doubleQuotedAsJSON: true });
  return text.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, unicodeEscape);
}

/** Words that are truth values or null in some version get quotes from the library. */
const plainKey = /^[A-Za-z_][\w.-]*$/;

/** YAML 1.1 takes `1e+21` for text: it wants a point. */
const exponential = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: (value: unknown) => typeof value === "number" && String(value).includes("e"),
  test: /^-?\d+\.\d+e[-+]\d+$/,
  resolve: Number,
  stringify: ({ value }: { readonly value: unknown }) =>
    String(value).replace(/^(-?\d+)e/, "$1.0e"),
} as const;

export const configurationText = async (
  configuration: Configuration,
  format: "yaml" | "json",
): Promise<string> =>
  format === "json" ? `${exactJson(configuration)}\n` : renderConfiguration(configuration);

/** Integers of any length stay exact. */
const exactJson = (configuration: Configuration): string =>
  JSON.stringify(configuration, (_key, value: unknown) =>
    typeof value === "bigint" ? rawJson.rawJSON(String(value)) : value,
  );

/** TypeScript's types lack this function. */
const rawJson = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/** A real configuration has a few kilobytes. The parser's time for some texts grows with the square of their length. */
const mostBytes = 256 * 1024;
const mostProblems = 20;

/**
 * Reads a text of YAML 1.2, and so of JSON. What JSON can't hold is refused, and so is what readers
 * of YAML 1.1 would take for something else. `path` is the name that problems show.
 */
export async function parseConfiguration(
  text: string,
  path: string,
): Promise<Checked<Configuration>> {
  if (text.length > mostBytes)
    return problem(`${path}: it is larger than ${mostBytes / 1024} KiB.`);
  const yaml = await import("yaml");
  const lineCounter = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { ...yamlOptions, lineCounter });
  const faults = [...document.errors, ...document.warnings].map(
    ({ pos, code, message }): Fault => ({
      at: pos[0],
      message: plainer[code] ?? message,
    }),
  );
  const found = faults.length > 0 ? faults : yamlFaults(yaml, document);
  if (found.length > 0) {
    const shown = found.slice(0, mostProblems);
    return {
      problems: shown.map(({ at, message }) => {
        const { line, col } = lineCounter.linePos(at);
        return `${path}:${line}:${col}: ${outside(message)}`;
      }),
    };
  }
  return mapping(
    () => document.toJS({ reviver: (_key, value: unknown) => plain(value) }) as unknown,
    path,
  );
}

/**
 * Returns the mapping that a text of any version of YAML contains, for those who only search it: it
 * may be a platform's own file.
 */
export async function searchableMapping(text: string): Promise<Configuration | undefined> {
  if (text.length > mostBytes) return undefined;
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, yamlOptions);
  return document.errors.length > 0
    ? undefined
    : mapping(() => document.toJS() as unknown, "").value;
}

/** Sets, dates and other values of YAML 1.1 aren't resolved, even if a document asks for them. */
const yamlOptions = {
  version: "1.2",
  schema: "core",
  resolveKnownTags: false,
  merge: true,
  intAsBigInt: true,
  prettyErrors: false,
  uniqueKeys: false,
  logLevel: "error",
} as const;

const plainer: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "a second document begins here; put all settings into one",
  RESOURCE_EXHAUSTION: "this is nested too deeply",
  TAG_RESOLVE_FAILED: problems.tag,
};

function mapping(read: () => unknown, path: string): Checked<Configuration> {
  try {
    const value = read() ?? {};
    if (isTooDeep(value)) return problem(`${path}: ${tooDeep}`);
    if (isMapping(value)) return { value };
    return problem(`${path}: the top level must be a mapping (key: value).`);
  } catch (error) {
    if (error instanceof RangeError) return problem(`${path}: ${tooDeep}`);
    return problem(`${path}: cannot resolve its anchors and aliases: ${aliasLimits}`);
  }
}

/** YAML's indentation makes what is rendered grow with the square of the depth. PyYAML reads some hundreds of levels. */
const mostLevels = 100;
const tooDeep = `it is nested too deeply; ${mostLevels} levels are allowed.`;
/** The parser's own limit. */
const aliasLimits = "an alias stands for too much, or for what it is in.";

function isTooDeep(value: unknown): boolean {
  let level = collectionsOf([value]);
  for (let depth = 1; level.size > 0; depth += 1) {
    if (depth > mostLevels) return true;
    level = collectionsOf([...level].flatMap((each) => Object.values(each) as unknown[]));
  }
  return false;
}

/** Each once, however many aliases lead to it. */
const collectionsOf = (values: readonly unknown[]): ReadonlySet<object> =>
  new Set(values.filter((each) => typeof each === "object" && each !== null));

/** Integers of any length stay exact; those that a number can hold become numbers. */
const plain = (value: unknown): unknown =>
  typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;

async function readConfigurationText(path: string, signal: AbortSignal): Promise<Checked<string>> {
  try {
    return { value: await readText(path, mostBytes, signal) };
  } catch (error) {
    signal.throwIfAborted();
    return problem(`${path}: ${unreadableReason(error)}.`);
  }
}

/** A file on this machine and its target path on a node. */
export interface FileToCopy extends Omit<ListedFile, "path"> {
  readonly target: string;
}

/**
 * Lists the files of `--genconf-dir`, with targets relative to the installer's `genconf` folder.
 * `folder` is absolute.
 */
export async function readGenconfFolder(
  folder: string,
  signal: AbortSignal,
): Promise<Checked<readonly FileToCopy[]>> {
  const unusable = await folderProblem(folder);
  if (unusable !== undefined) return problem(unusable);
  const listed = await listFilesToCopy(folder, "", signal);
  if (listed.problems !== undefined) return listed;
  if (listed.value.some(({ target }) => target === "config.yaml"))
    return problem(
      `${folder}/config.yaml is not allowed: pass your configuration with ${optionName("extraConfig")}`,
    );
  return { value: listed.value.map((file) => ({ ...file, mode: scriptMode(file) })) };
}

export async function listFilesToCopy(
  folder: string,
  target: string,
  signal: AbortSignal,
): Promise<Checked<readonly FileToCopy[]>> {
  const listed = await listFiles(folder, {}, signal);
  if (listed.problems !== undefined) return listed;
  return {
    value: listed.value.map(({ path, ...file }) => ({ ...file, target: posix.join(target, path) })),
  };
}

/** genconf runs these two files, so they are executable whatever their mode is here. */
const scriptMode = ({ target, mode }: FileToCopy): number =>
  target === "ip-detect" || target === "ip-detect-public" ? mode | 0o555 : mode;

export interface License {
  /** Secret. */
  readonly contents: string;
  /** The option or variable, as messages name it. */
  readonly source: string;
}

interface LicenseSources {
  readonly variant: Variant;
  readonly extraConfiguration: Configuration;
  /** The value of the command-line option. */
  readonly optionPath: string | undefined;
  readonly environment: Environment;
}

/**
 * Finds the license in the documented order: the first source that is present wins, and the others
 * stay unread. For other variants it reads none. Undefined: no source is present. A source that is
 * present but unreadable or empty is a problem; it is not skipped.
 */
export async function resolveLicense(
  sources: LicenseSources,
  signal: AbortSignal,
): Promise<Checked<License | undefined>> {
  if (sources.variant !== "enterprise") return { value: undefined };
  const contents = sources.extraConfiguration["license_key_contents"];
  if (contents !== undefined) return fromConfiguration(contents);
  if (sources.optionPath !== undefined)
    return fromFile(sources.optionPath, optionName("licenseKey"), signal);
  const path = variable(sources.environment, "CLUSTER_LICENSE_KEY_PATH");
  return path === undefined
    ? { value: undefined }
    : fromFile(path, "CLUSTER_LICENSE_KEY_PATH", signal);
}

function fromConfiguration(contents: unknown): Checked<License> {
  if (typeof contents === "string")
    return { value: { contents, source: optionName("extraConfig") } };
  return problem(`${optionName("extraConfig")}: license_key_contents must be text.`);
}

/** A license is a few lines. Longer texts could not be masked; see cluster-secrets.ts. */
const mostLicenseBytes = 16 * 1024;

async function fromFile(
  path: string,
  source: License["source"],
  signal: AbortSignal,
): Promise<Checked<License>> {
  try {
    const contents = (await readText(path, mostLicenseBytes, signal)).replace(/\r?\n$/, "");
    return contents === ""
      ? problem(`${source}: the license file ${path} is empty.`)
      : { value: { contents, source } };
  } catch (error) {
    signal.throwIfAborted();
    return problem(`${source}: cannot read the license file ${path}: ${unreadableReason(error)}.`);
  }
}
