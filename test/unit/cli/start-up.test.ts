/** What a program loads before it knows what it is asked to do: all of it is paid for by every `--version` and every key press in a shell. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..", "..");

/** Modules of the runtime that the program's first file imports, and the bytes of our own, by way of others too, but not by `import()`. */
async function loadedAtOnce(program: string): Promise<{ readonly modules: readonly string[]; readonly bytes: number }> {
  const entry = join(root, "src", "bin", `${program}.ts`);
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: "bun",
    format: "esm",
    splitting: true,
    minify: true,
    define: { CLUSTER_E2E_VERSION: '"1"' },
  });
  const texts = new Map<string, string>();
  for (const output of outputs) texts.set(output.path.replace(/^\.\//, ""), await output.text());
  const modules = new Set<string>();
  const seen = new Set<string>();
  const visit = (name: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    // Not the end of a text, such as the name of the command `import` or the option `--from`.
    for (const [, path = ""] of (texts.get(name) ?? "").matchAll(/(?<!["-])(?:\bfrom|\bimport)\s*"([^"]+)"/g)) {
      if (path.startsWith("./")) visit(path.slice(2));
      else modules.add(path);
    }
  };
  visit(`${program}.js`);
  const bytes = [...seen].reduce((sum, name) => sum + (texts.get(name)?.length ?? 0), 0);
  return { modules: [...modules].toSorted(), bytes };
}

test.each(["cluster-cloud", "cluster-container", "cluster-vm"])(
  "%s begins with little code, and with none of the runtime's heavy modules",
  async (program) => {
    const { modules, bytes } = await loadedAtOnce(program);
    // node:net alone, with its streams, takes as long as everything else together.
    expect(modules).toEqual([]);
    expect(bytes).toBeWithin(10_000, 70_000);
  },
);
