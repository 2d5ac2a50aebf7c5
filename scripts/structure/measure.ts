import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readFlows } from "./flows.ts";
import type { Flow } from "./flows.ts";
import { findSources } from "./find-sources.ts";
import { goFunctions } from "./go-functions.ts";
import { cyclesOf, resolveImports, upwardImports } from "./import-graph.ts";
import { readModule } from "./read-module.ts";

/** What structureTable() shows of one checkout. */
export interface Measures {
  readonly lines: number;
  readonly fileLengths: readonly number[];
  /** Of every function that is longer than one line. */
  readonly functionLengths: readonly number[];
  readonly mostFilesInFolder: number;
  /** Absent for Go, whose files see all of their folder without an import. */
  readonly imports?: ImportMeasures;
  readonly flows: readonly Flow[];
}

interface ImportMeasures {
  readonly perFile: number;
  /** Groups of files that all import each other, directly or not. */
  readonly cycles: readonly (readonly string[])[];
  /** Absent for a project whose layers are unknown. */
  readonly upward?: readonly string[];
}

export async function measureCheckout(root: string): Promise<Measures> {
  const { language, paths } = await findSources(root);
  if (paths.length === 0) throw new Error(`${root} has no sources in TypeScript, JavaScript or Go`);
  const sources = await Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })),
  );
  const fileLengths = sources.map(({ text }) => text.trimEnd().split("\n").length);
  const folders = Map.groupBy(paths, (path) => dirname(path));
  const shared = {
    lines: fileLengths.reduce((sum, length) => sum + length, 0),
    fileLengths,
    mostFilesInFolder: Math.max(...[...folders.values()].map((files) => files.length)),
    flows: await readFlows(root),
  };
  if (language === "go") return { ...shared, functionLengths: sources.flatMap(({ text }) => goFunctions(text)) };
  const modules = sources.map(({ path, text }) => ({ path, ...readModule(path, text) }));
  const graph = resolveImports(modules);
  const upward = upwardImports(graph);
  return {
    ...shared,
    functionLengths: modules.flatMap(({ functionLengths }) => functionLengths),
    imports: {
      perFile: [...graph.values()].reduce((sum, imported) => sum + imported.length, 0) / paths.length,
      cycles: cyclesOf(graph),
      ...(upward !== undefined && { upward }),
    },
  };
}
