/** Rules of this project that no linter checks: which layer may import which, how files are named, how large they may be. */
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";

interface SourceFile {
  /** From the top of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

const topLevel =
  `package.json bunfig.toml src test scripts tsconfig.json README.md bun.lock .gitignore .ci .git-blame-ignore-revs .github .oxlintrc.json
  .oxfmtrc.json .knip.json CHANGELOG.md CONTRIBUTING.md LICENSE`.split(/\s+/);

/**
 * The layers of src, from the top down, and what each may import besides itself: only layers further down. Type imports count as well, and there are
 * no exceptions. `backend/<own>`: the backend that the importing file is named after.
 */
export const imports: Readonly<Record<string, readonly string[]>> = {
  bin: ["commands", "cli", "backend/<own>", "backend/contract.ts", "model"],
  "index.ts": [
    "library",
    "cluster",
    "backend/cloud",
    "backend/container",
    "backend/vm",
    "backend/contract.ts",
    "platform",
    "system",
    "model",
  ],
  library: ["cluster", "backend/contract.ts", "platform", "store", "ssh", "system", "model"],
  commands: [
    "cli",
    "cluster",
    "backend/contract.ts",
    "platform",
    "store",
    "ssh",
    "system",
    "model",
  ],
  cli: ["system", "model/rule.ts"],
  cluster: ["backend/contract.ts", "platform", "store", "ssh", "system", "model"],
  "backend/cloud": ["backend/shared", "backend/contract.ts", "store", "ssh", "system", "model"],
  "backend/container": ["backend/shared", "backend/contract.ts", "store", "ssh", "system", "model"],
  "backend/vm": ["backend/shared", "backend/contract.ts", "store", "ssh", "system", "model"],
  "backend/shared": ["backend/contract.ts", "store", "ssh", "system", "model"],
  platform: ["ssh", "system", "model"],
  store: ["ssh", "system", "model"],
  ssh: ["system", "model"],
  "backend/contract.ts": ["system", "model"],
  system: ["model"],
  model: [],
  "errors.ts": ["outside-text.ts"],
  "outside-text.ts": ["references.ts"],
  "references.ts": [],
  "version.ts": [],
};

/** A folder of src with more files needs subfolders that say what belongs together. */
const mostFilesInFolder = 20;

/** The layers that may import each package. */
const packageLayers: Readonly<Record<string, readonly string[]>> = {
  ssh2: ["ssh"],
  "@aws-sdk": ["backend/cloud"],
  "@smithy": ["backend/cloud"],
  arg: ["cli"],
  open: ["system"],
  yaml: ["platform", "cli"],
};

const openToAll = ["src/errors.ts", "src/outside-text.ts", "src/references.ts", "src/version.ts"];
/** Only these may use `process` and `console`: the edges of a program and, in index.ts, of a program that uses the library. */
const mayUseProcess =
  /^(src\/bin\/|src\/cli\/(main|terminal)\.ts$|src\/index\.ts$|src\/system\/(own-user|usable-memory)\.ts$|scripts\/|test\/)/;
/** Only these write to files and streams at once: the log, and the writer of this process's outputs. */
const mayWriteSync = /^src\/(cli\/log-file|system\/processes\/output)\.ts$/;
/** Merely touching the process's streams changes them for other programs: use openOutput. */
const touchesStreams = /\b(?:process|host)\??\.(?:stdin|stdout|stderr)\b/;
/** A program's output inside a message, unless a function of system/printable.ts has made a line of it. */
const quotesOutput = /\$\{(?!outside(?:Lines?|Reason)\()[^}]*\.(?:stdout|stderr)\b/;
/** A variable that is read without `variable`, which counts an empty one as unset. An empty search path has no programs, and is left as it is. */
const readsVariable =
  /\benvironment\??\.?\[(?!"PATH"\])|\{[^{}]*\b[A-Z][A-Z_]{2,}\b[^{}]*\} = (?:\w+\.)*environment\b/;
const meaningless =
  /(^|\/)(utils?|helpers?|managers?|common|misc|base)(\/|\.|$)|-(utils?|helpers?|managers?)(\/|\.|$)/;
const quotesWithoutMarks = /\$\{(?:error|failure|refusal|reason|cause|problem)\??\.message\b/;
/** The end of a compound command on a line of its own, within a template. */
const shellInString = /`(?:\\.|[^`\\])*\n\s*(?:fi|done|esac|set -e\w*)\n/;
/** Comments, of which one says who runs the file, and an empty line: shell-text.ts leaves it out. */
const header = /^(?:#(?!.*\b[Rr]uns?\b).*\n)*#.*\b[Rr]uns?\b.*\n(?:#.*\n)*\n/;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.ts$/;

/** Every violation of a rule, as `path: problem`. Most rules ignore the text of comments and strings. */
export function violations(files: readonly SourceFile[]): readonly string[] {
  const sources = files.filter(({ path }) => /^(src|scripts|test)\/.*\.ts$/.test(path));
  return [
    ...files
      .filter(({ path }) => !topLevel.includes(path.split("/")[0]!))
      .map(({ path }) => `${path}: not for the top level`),
    ...files
      .filter(({ path }) => meaningless.test(path))
      .map(({ path }) => `${path}: a name without meaning`),
    ...sources.flatMap((file) => shapeFaults(file).map((fault) => `${file.path}: ${fault}`)),
    ...sources.flatMap((file) => importFaults(file).map((fault) => `${file.path}: ${fault}`)),
    ...files
      .filter(
        ({ path, text }) => /^src\/.*\.(sh|py|containerfile)$/.test(path) && !header.test(text),
      )
      .map(({ path }) => `${path}: no header that says who runs it`),
    ...files
      .filter(({ path, text }) => mayNeedNoDisk.test(path) && text.includes("<<"))
      .map(({ path }) => `${path}: a here-document, which needs space on the disk: use printf`),
    ...crowds(sources.filter(({ path }) => path.startsWith("src/"))),
    ...cycles(sources.filter(({ path }) => path.startsWith("src/"))),
    ...leaksIntoEndToEnd(sources),
  ];
}

const mostLines = 400;

/** Scripts that must work on nodes with a full disk: all but those that write to it in any case. */
const mayNeedNoDisk = /^src\/(?!platform\/(?:install|folder|layouts)\/|backend\/).*\.sh$/;

function shapeFaults({ path, text }: SourceFile): readonly string[] {
  const code = withoutWords(text);
  const faults: readonly (readonly [boolean, string])[] = [
    [text.trimEnd().split("\n").length > mostLines, "too many lines"],
    [!kebabCase.test(basename(path)), "not in kebab-case"],
    [/^(export\s+)?(let|var)\b/m.test(code), "state at module level"],
    [/^export default\b/m.test(code), "a default export"],
    [/\bprocess\.exit\(/.test(code), "process.exit loses output: set process.exitCode"],
    [
      !mayUseProcess.test(path) && /(?<![.\w])(process|console)\./.test(code),
      "process or console outside the files that may use them",
    ],
    [/\bsignal\?:\s*AbortSignal\b/.test(code), "an AbortSignal that may be left out"],
    [/\bmock\.module\(/.test(code), "a module mock"],
    [
      path !== "test/support/loopback-server.ts" && /\bBun\.serve\(/.test(code),
      "a web server for everyone on this computer: use serveOnLoopback",
    ],
    [
      !/^test\/(support\/ssh-login|unit\/architecture-rules\.test)\.ts$/.test(path) &&
        /\bcontext\.accept\(/.test(code),
      "an SSH server for everyone on this computer: use answerLogin",
    ],
    [
      path.startsWith("src/") &&
        !/^src\/system\/(files\/|parse-json\.ts$)/.test(path) &&
        isUnbounded(text),
      "reads or parses a text of any length: use readText, readOwnText, readBody, parseJson",
    ],
    [
      path.startsWith("src/") && quotesWithoutMarks.test(withoutComments(text)),
      "an error's message in a text: quote it with messageOf, which keeps the marks of outside text",
    ],
    [
      path.startsWith("src/") && shellInString.test(withoutComments(text)),
      "shell text belongs into a .sh file",
    ],
    [
      path.startsWith("src/") && startsWithOurEnvironment(code),
      "starts a program without choosing its environment",
    ],
    [
      path.startsWith("src/") && !mayWriteSync.test(path) && /\bwriteSync\(/.test(code),
      "writes past the terminal",
    ],
    [
      path.startsWith("src/") && touchesStreams.test(code),
      "touches the process's streams: use openOutput",
    ],
    [
      path.startsWith("src/") && quotesOutput.test(withoutComments(text)),
      "quotes a program's output without outsideLine",
    ],
    [
      path.startsWith("src/") &&
        path !== "src/system/variable.ts" &&
        readsVariable.test(withoutComments(text)),
      "reads an environment variable without `variable`",
    ],
    [path !== "src/index.ts" && isBarrel(path, code), "a barrel file"],
    [path.startsWith("src/") && !isNamedAfterExport(path, code), "not named after what it exports"],
  ];
  return faults.filter(([found]) => found).map(([, fault]) => fault);
}

/** Texts from outside have a limit. Whatever reads one in one piece, or parses JSON of any depth, has none. */
const isUnbounded = (text: string): boolean =>
  /(?<!\w)readFile\([^()]*(?:\([^()]*\)[^()]*)*,\s*"utf8"\)|(?<!\w)JSON\.parse\(|\bresponse\.(?:text|json)\(\)/.test(
    withoutComments(text),
  );

/** A program that is started without `env` inherits everything, credentials included. */
const startsWithOurEnvironment = (code: string): boolean =>
  [...code.matchAll(/\b(?:spawn|spawnSync|promisify\(execFile\))\([\s\S]*?\);/g)].some(
    ([call]) => !/\benv\b/.test(call),
  );

function isBarrel(path: string, code: string): boolean {
  if (basename(path) === "index.ts" || /^export \*/m.test(code)) return true;
  const exported = code.match(/^export\b[^;{]*(\{[^}]*\}\s*from\b)?/gm) ?? [];
  return exported.length > 0 && exported.every((statement) => /\}\s*from$/.test(statement));
}

/** A file with one function, class or constant is named after it, or after a type in the same file. A file with several may have any name. */
function isNamedAfterExport(path: string, code: string): boolean {
  const values = namesIn(
    code,
    /^export (?:async )?(?:abstract )?(?:function\*?|class|const) (\w+)/gm,
  );
  const types = namesIn(code, /^export (?:interface|type) (\w+)/gm);
  const name = basename(path, ".ts");
  if (
    values.length > 1 ||
    values.length + types.length === 0 ||
    name === "main" ||
    name === "contract"
  )
    return true;
  return [...values, ...types].some((exported) =>
    wordsOf(name).every((word) => wordsOf(exported).includes(word)),
  );
}

const namesIn = (code: string, pattern: RegExp): readonly string[] =>
  [...code.matchAll(pattern)].map((match) => match[1]!);

/** `toClusters` and `to-cluster` have the same words. */
const wordsOf = (name: string): readonly string[] =>
  (name.match(/[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])/g) ?? []).map((word) =>
    word.toLowerCase().replace(/s$/, ""),
  );

function importFaults(file: SourceFile): readonly string[] {
  if (!file.path.startsWith("src/")) return [];
  const layer = layerOf(file.path);
  if (imports[layer] === undefined) return [`no such layer: ${layer}`];
  return imported(file).flatMap((target) => {
    if (target.startsWith("node:process")) return ["imports node:process"];
    if (/^(node|bun)(:|$)/.test(target)) return [];
    if (target.startsWith("src/"))
      return mayImport(file.path, target) ? [] : [`${layer} must not import ${target}`];
    if (target.startsWith(".") || target.startsWith("test/") || target.startsWith("scripts/"))
      return [`imports ${target}`];
    const layers = packageLayers[target.split("/")[0]!] ?? [];
    return layers.includes(layer) ? [] : [`${layer} must not import the package ${target}`];
  });
}

function mayImport(from: string, to: string): boolean {
  const layer = layerOf(from);
  if (openToAll.includes(to) && !openToAll.includes(from)) return true;
  const own = basename(from, ".ts").replace(/^cluster-/, "");
  const allowed = imports[layer]!.map((entry) => entry.replace("<own>", own));
  return (
    layerOf(to) === layer ||
    allowed.includes(layerOf(to)) ||
    allowed.some((entry) => `src/${entry}` === to)
  );
}

function crowds(sources: readonly SourceFile[]): readonly string[] {
  const folders = Map.groupBy(sources, ({ path }) => dirname(path));
  return [...folders]
    .filter(([, files]) => files.length > mostFilesInFolder)
    .map(([folder, files]) => `${folder}: ${files.length} files in one folder`);
}

/** Files that import each other in a cycle. Each cycle is listed once, with its files in alphabetical order. */
function cycles(sources: readonly SourceFile[]): readonly string[] {
  const targets = new Map(sources.map((file) => [file.path, imported(file)]));
  const reachable = new Map(sources.map(({ path }) => [path, reachedFrom(path, targets)]));
  const found = sources
    .map(({ path }) =>
      [...reachable.get(path)!].filter((other) => reachable.get(other)?.has(path)).toSorted(),
    )
    .filter((cycle) => cycle.length > 0)
    .map((cycle) => `${cycle[0]!}: import cycle with ${cycle.slice(1).join(", ")}`);
  return [...new Set(found)];
}

/** All files that a file imports, directly or not. Contains the file itself only if one of them imports it. */
function reachedFrom(
  path: string,
  targets: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const reached = new Set<string>();
  const pending = [path];
  for (const next of pending) {
    for (const target of targets.get(next) ?? []) {
      if (!targets.has(target) || reached.has(target)) continue;
      reached.add(target);
      pending.push(target);
    }
  }
  return reached;
}

/** The first folder below src, with the backend's name if there is one. The contract, with its parts beside it, and a file directly in src are layers of their own. */
function layerOf(path: string): string {
  if (/^src\/backend\/[^/]+\.ts$/.test(path)) return "backend/contract.ts";
  const [, first = "", second = "", third] = path.split("/");
  return first === "backend" && third !== undefined ? `${first}/${second}` : first;
}

/** Everything that a file imports or re-exports, types included: paths from the top of the repository, or package names. */
function imported({ path, text }: SourceFile): readonly string[] {
  const code = withoutComments(text);
  const patterns = [
    /^(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"/gm,
    /^import\s*"([^"]+)"/gm,
    /\bimport\(\s*"([^"]+)"/g,
  ];
  const names = patterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => match[1]!),
  );
  return names.map((name) => (name.startsWith(".") ? normalize(join(dirname(path), name)) : name));
}

/** The end-to-end tests use only the executables: neither they nor the files that they import may import from src. */
function leaksIntoEndToEnd(sources: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const reached = sources.filter(({ path }) => path.startsWith("test/e2e/"));
  const leaks: string[] = [];
  for (const file of reached) {
    for (const target of imported(file)) {
      const next = byPath.get(target);
      if (target.startsWith("src/"))
        leaks.push(`${file.path}: the end-to-end tests must not import ${target}`);
      else if (next !== undefined && !reached.includes(next)) reached.push(next);
    }
  }
  return leaks;
}

function withoutComments(text: string): string {
  return text.replace(
    /("(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\/.*|\/\*[\s\S]*?\*\//g,
    (_, literal?: string) => literal ?? "",
  );
}

function withoutWords(text: string): string {
  return withoutComments(text).replace(/"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, '""');
}

/** Every file of the working tree except those that git ignores. */
export async function repository(): Promise<readonly SourceFile[]> {
  const root = join(import.meta.dir, "..", "..");
  const top = (await readdir(root)).filter(
    (name) => !/^(\.git|node_modules|dist|.*\.bun-build)$/.test(name),
  );
  const glob = new Bun.Glob("**/*");
  const inside = await Promise.all(
    [".github", "src", "scripts", "test"].map(async (folder) =>
      (await Array.fromAsync(glob.scan({ cwd: join(root, folder), dot: true }))).map(
        (path) => `${folder}/${path}`,
      ),
    ),
  );
  const texts = inside.flat().map(async (path) => ({
    path,
    text: /\.(ts|sh|py|containerfile)$/.test(path) ? await readFile(join(root, path), "utf8") : "",
  }));
  return [...top.map((path) => ({ path, text: "" })), ...(await Promise.all(texts))];
}
