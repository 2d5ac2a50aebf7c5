import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readFlows } from "./flows.ts";
import type { Flow } from "./flows.ts";
import { cyclesOf, type ImportGraph, resolveImports, upwardImports } from "./import-graph.ts";
import { type Module, readModule } from "./read-module.ts";

/** What structureTable() shows. */
export interface Measures {
  /** Of TypeScript, without comments. */
  readonly tokens: number;
  readonly lines: number;
  readonly bytes: number;
  /** Relative imports and exports, all files together. */
  readonly relativeImports: number;
  readonly exports: number;
  readonly modules: number;
  readonly namedTypes: number;
  readonly fileLengths: readonly number[];
  /** Of every function that is longer than one line. */
  readonly functionLengths: readonly number[];
  readonly mostFilesInFolder: number;
  readonly imports: ImportMeasures;
  readonly flows: readonly Flow[];
  /** Members of the interfaces that a backend implements. */
  readonly contractMembers: number;
}

interface ImportMeasures {
  /** Short files that only one other file imports. */
  readonly shortWithOneImporter: readonly string[];
  /** Groups of files that all import each other, directly or not. */
  readonly cycles: readonly (readonly string[])[];
  readonly upward: readonly string[];
}

type ReadModule = Module & { readonly path: string; readonly lines: number };

/** Measures the sources below this folder, without declarations. */
export async function measureSources(root: string): Promise<Measures> {
  const found = await Array.fromAsync(new Bun.Glob("src/**/*.ts").scan(root));
  const paths = found.filter((path) => !path.endsWith(".d.ts")).toSorted();
  const code = await Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })),
  );
  const folders = Map.groupBy(
    code.map(({ path }) => path),
    (path) => dirname(path),
  );
  const fileLengths = code.map(({ text }) => lineCount(text));
  const modules = code.map(({ path, text }) => ({
    path,
    lines: lineCount(text),
    ...readModule(path, text),
  }));
  return {
    lines: fileLengths.reduce((sum, length) => sum + length, 0),
    bytes: code.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0),
    fileLengths,
    mostFilesInFolder: Math.max(...[...folders.values()].map((files) => files.length)),
    flows: await readFlows(root),
    ...measureModules(modules),
  };
}

function measureModules(modules: readonly ReadModule[]) {
  const graph = resolveImports(modules);
  const contract = modules.find(({ path }) => path === "src/backend/contract.ts")?.members;
  const sum = (count: (module: ReadModule) => number): number =>
    modules.reduce((total, module) => total + count(module), 0);
  return {
    tokens: sum(({ tokens }) => tokens),
    relativeImports: sum(
      ({ specifiers }) => specifiers.filter((each) => each.startsWith(".")).length,
    ),
    exports: sum(({ exports }) => exports),
    modules: modules.length,
    namedTypes: sum(({ members }) => members.size),
    functionLengths: modules.flatMap(({ functionLengths }) => functionLengths),
    imports: {
      shortWithOneImporter: shortWithOneImporter(modules, graph),
      cycles: cyclesOf(graph),
      upward: upwardImports(graph),
    },
    contractMembers: contractInterfaces.reduce(
      (total, name) => total + (contract?.get(name) ?? 0),
      0,
    ),
  };
}

/** What every backend implements, optional members included. */
const contractInterfaces = ["CommonKind", "LocalKind", "Backend", "Creation"];

/** A file with fewer lines could stand in the one file that imports it. */
const shortLines = 40;

function shortWithOneImporter(
  modules: readonly ReadModule[],
  graph: ImportGraph,
): readonly string[] {
  const importers = Map.groupBy([...graph.values()].flat(), (path) => path);
  return modules
    .filter(({ path, lines }) => lines < shortLines && importers.get(path)?.length === 1)
    .map(({ path }) => path);
}

const lineCount = (text: string): number => text.trimEnd().split("\n").length;
