import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readFlows } from "./flows.ts";
import type { Flow } from "./flows.ts";
import { findSources } from "./find-sources.ts";
import { goFunctions } from "./go-functions.ts";
import { cyclesOf, type ImportGraph, resolveImports, upwardImports } from "./import-graph.ts";
import { type Module, readModule } from "./read-module.ts";

/** What structureTable() shows of one checkout. */
export interface Measures {
  readonly files: number;
  readonly lines: number;
  readonly bytes: number;
  readonly fileLengths: readonly number[];
  /** Of every function that is longer than one line. */
  readonly functionLengths: readonly number[];
  readonly mostFilesInFolder: number;
  /** Absent for Go, whose files see all of their folder without an import. */
  readonly imports?: ImportMeasures;
  readonly flows: readonly Flow[];
  /** Members of the interfaces that a backend implements; absent where there is no such contract. */
  readonly contractMembers?: number;
}

interface ImportMeasures {
  /** Short files that only one other file imports. */
  readonly shortWithOneImporter: readonly string[];
  /** Groups of files that all import each other, directly or not. */
  readonly cycles: readonly (readonly string[])[];
  /** Absent for a project whose layers are unknown. */
  readonly upward?: readonly string[];
}

type ReadModule = Module & { readonly path: string; readonly lines: number };

export async function measureCheckout(root: string): Promise<Measures> {
  const { language, paths } = await findSources(root);
  if (paths.length === 0) throw new Error(`${root} has no sources in TypeScript, JavaScript or Go`);
  const sources = await Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })),
  );
  const fileLengths = sources.map(({ text }) => lineCount(text));
  const folders = Map.groupBy(paths, (path) => dirname(path));
  const shared = {
    files: paths.length,
    lines: fileLengths.reduce((sum, length) => sum + length, 0),
    bytes: sources.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0),
    fileLengths,
    mostFilesInFolder: Math.max(...[...folders.values()].map((files) => files.length)),
    flows: await readFlows(root),
  };
  if (language === "go")
    return { ...shared, functionLengths: sources.flatMap(({ text }) => goFunctions(text)) };
  const modules = sources
    .filter(({ path }) => !/\.(?:sh|py)$/.test(path))
    .map(({ path, text }) => ({ path, lines: lineCount(text), ...readModule(path, text) }));
  return { ...shared, ...measureModules(modules) };
}

function measureModules(
  modules: readonly ReadModule[],
): Pick<Measures, "functionLengths" | "imports" | "contractMembers"> {
  const graph = resolveImports(modules);
  const upward = upwardImports(graph);
  const contract = modules.find(({ path }) => path === "src/backend/contract.ts")?.members;
  return {
    functionLengths: modules.flatMap(({ functionLengths }) => functionLengths),
    imports: {
      shortWithOneImporter: shortWithOneImporter(modules, graph),
      cycles: cyclesOf(graph),
      ...(upward !== undefined && { upward }),
    },
    ...(contract !== undefined && {
      contractMembers: contractInterfaces.reduce((sum, name) => sum + (contract.get(name) ?? 0), 0),
    }),
  };
}

/** What every backend implements, optional members included. */
const contractInterfaces = ["BackendKind", "Backend", "Creation"];

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
