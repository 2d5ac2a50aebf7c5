import { dirname, join } from "node:path";

/** By path: the files of the project that a file imports. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** The layers of this project, from the top down: each may import those below it. */
const layers =
  "bin index.ts library commands cli cluster backend platform store ssh system model errors.ts outside-text.ts references.ts version.ts".split(
    " ",
  );

export function resolveImports(
  modules: readonly { readonly path: string; readonly specifiers: readonly string[] }[],
): ImportGraph {
  const paths = new Set(modules.map(({ path }) => path));
  return new Map(
    modules.map(({ path, specifiers }) => {
      const own = specifiers.filter((specifier) => specifier.startsWith("."));
      const found = own.map((specifier) => join(dirname(path), specifier));
      return [path, [...new Set(found.filter((each) => paths.has(each)))]];
    }),
  );
}

/** Groups of two files or more in which each imports each other, directly or not: strongly connected components. */
export function cyclesOf(graph: ImportGraph): readonly (readonly string[])[] {
  const reachable = new Map([...graph.keys()].map((path) => [path, reachableFrom(path, graph)]));
  const isMutual = (one: string, other: string): boolean =>
    reachable.get(one)?.has(other) === true && reachable.get(other)?.has(one) === true;
  const groups: string[][] = [];
  for (const path of graph.keys()) {
    const group = groups.find(([first = ""]) => isMutual(first, path));
    if (group === undefined) groups.push([path]);
    else group.push(path);
  }
  return groups.filter((group) => group.length > 1);
}

function reachableFrom(path: string, graph: ImportGraph): ReadonlySet<string> {
  const found = new Set<string>();
  const waiting = [...(graph.get(path) ?? [])];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    waiting.push(...(graph.get(next) ?? []));
  }
  return found;
}

/** Lists imports of a higher layer as `importer → imported`. */
export function upwardImports(graph: ImportGraph): readonly string[] {
  return [...graph].flatMap(([path, imported]) =>
    imported
      .filter((target) => layerOf(target) < layerOf(path))
      .map((target) => `${path} → ${target}`),
  );
}

const layerOf = (path: string): number => layers.indexOf(path.split("/")[1] ?? "");
