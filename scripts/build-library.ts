/**
 * Builds the library for Node 22.15 and later into dist/library: an ES module for each source that it imports, and type declarations. Bun uses
 * src/index.ts as it is.
 * Usage: bun run build:library
 */
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize, relative } from "node:path";
import { buildVersion } from "./build.ts";

const root = join(import.meta.dir, "..");
const dist = join(root, "dist");

/** What Node lacks or does otherwise, and the replacements in library/node.ts, under a name that no source has for anything else. */
const substitutes: readonly (readonly [RegExp, string])[] = [
  [/\bnew AbortController\b/g, "new nodeSubstitutes.AbortController"],
  [/\bAbortSignal\.any\b/g, "nodeSubstitutes.anySignal"],
  [/\bAbortSignal\.timeout\b/g, "nodeSubstitutes.timeoutSignal"],
  [/\bawait import\("bun:ffi"\)/g, "nodeSubstitutes.foreignFunctions"],
];

/** Features that the library must not use, as far as the compiler doesn't find them: see library/node.d.ts. */
const tooNew =
  /\bBun\.|["']bun(?::\w+)?["']|\bimport\.meta\.(?:dir|file|main|path)\b|\bArray\.fromAsync\b|\bPromise\.try\b|\bIterator\.|\bnew (?:Async)?DisposableStack\b|\.(?:isSubsetOf|isSupersetOf|isDisjointFrom|symmetricDifference)\(/;

interface Compiling {
  /** The first file of the sources, from the top of the repository. */
  readonly first: string;
  readonly outDir: string;
  /** The configuration to write. */
  readonly project: string;
}

/** Compiles a file and everything that it imports. `using` is converted for Node 22. Throws if the code uses what Bun or a later Node has. */
export async function compileForNode({ first, outDir, project }: Compiling): Promise<void> {
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    types: ["node"],
    module: "esnext",
    rewriteRelativeImportExtensions: true,
    noEmit: false,
    declaration: true,
    rootDir: root,
    outDir,
    typeRoots: [join(root, "node_modules", "@types")],
  };
  const files = [
    first,
    "src/system/text-files.d.ts",
    "scripts/library/node.ts",
    "scripts/library/node.d.ts",
  ].map((file) => join(root, file));
  await writeFile(
    project,
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] }),
  );
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const child = Bun.spawn([process.execPath, "--bun", tsc, "--project", project], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`cannot compile the library:\n${text}`);
}

interface Copying {
  readonly from: string;
  readonly to: string;
  readonly first: string;
  readonly change: (path: string, text: string) => string;
}

/** Copies a file and those that it imports. Declarations import fewer files than modules. */
async function copyReached({ from, to, first, change }: Copying): Promise<void> {
  const ending = first.endsWith(".d.ts") ? ".d.ts" : ".js";
  const wanted = [first];
  for (const path of wanted) {
    const text = (await readFile(join(from, path), "utf8")).replaceAll(relativeImport, "$1.js$2");
    for (const [, start = ""] of text.matchAll(relativeImport)) {
      const name = start.slice(start.lastIndexOf('"') + 1);
      const next = normalize(join(dirname(path), name)) + ending;
      if (!wanted.includes(next)) wanted.push(next);
    }
    await mkdir(dirname(join(to, path)), { recursive: true });
    await writeFile(join(to, path), change(path, await withTexts(path, text)));
  }
}

/** Node can't import text: replaces such imports by the texts of the files beside the source. */
async function withTexts(path: string, text: string): Promise<string> {
  const imports = [...text.matchAll(textImport)];
  const texts = await Promise.all(
    imports.map(([, , file]) => readFile(join(root, "src", dirname(path), file ?? ""), "utf8")),
  );
  return imports.reduce(
    (changed, [statement, name], index) =>
      changed.replace(statement, () => `const ${name} = ${JSON.stringify(texts[index])};`),
    text,
  );
}

const textImport = /^import (\w+) from "([^"]+)" with \{ type: "text" \};$/gm;
const relativeImport = /(\b(?:from |import\()"\.[^"]+)\.(?:ts|js)(")/g;

/** Converts a compiled module for Node. Throws if that isn't possible. */
export function forNode(path: string, text: string, version: string): string {
  const changed = substitutes.reduce(
    (before, [pattern, substitute]) => before.replace(pattern, substitute),
    text,
  );
  const found = changed
    .split("\n")
    .find((line) => tooNew.test(line) && !/^\s*(?:\/?\*|\/\/)/.test(line));
  if (found !== undefined)
    throw new Error(`${path} is reached by the library, but not for Node 22:\n${found.trim()}`);
  const place = relative(dirname(path), "node.js");
  const lines = [
    ...(changed === text
      ? []
      : [`import * as nodeSubstitutes from "${place.startsWith(".") ? place : `./${place}`}";\n`]),
    ...(path === "version.js" ? [`const CLUSTER_E2E_VERSION = ${JSON.stringify(version)};\n`] : []),
  ];
  return lines.join("") + changed;
}

/** Users of the library's types needn't load the SDK's types, which are much larger and need a newer compiler. */
export function withoutPackages(path: string, text: string): string {
  const found = /(?:from |import\()"([^."][^"]*)"/.exec(text);
  if (found !== null)
    throw new Error(`the library's types lead to the package ${found[1]} in ${path}`);
  return text;
}

/** Builds the library completely or not at all, and returns its folder. */
export async function buildLibrary(version: string): Promise<string> {
  await mkdir(dist, { recursive: true });
  await using folder = await buildFolder();
  const [compiled, whole, target] = [
    join(folder.path, "compiled"),
    join(folder.path, "library"),
    join(dist, "library"),
  ];
  await compileForNode({
    first: "src/index.ts",
    outDir: compiled,
    project: join(folder.path, "tsconfig.json"),
  });
  const places = { from: join(compiled, "src"), to: whole };
  await copyReached({
    ...places,
    first: "index.js",
    change: (path, text) => forNode(path, text, version),
  });
  await copyReached({ ...places, first: "index.d.ts", change: withoutPackages });
  await rename(join(compiled, "scripts", "library", "node.js"), join(whole, "node.js"));
  await rm(target, { recursive: true, force: true });
  await rename(whole, target);
  return target;
}

async function buildFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(dist, ".build-library-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

if (import.meta.main) {
  try {
    const version = await buildVersion();
    console.log(`${relative(root, await buildLibrary(version))} ${version}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
