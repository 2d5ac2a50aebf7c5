/** What a program loads before it knows what it is asked to do, and then to know its commands: every key press in a shell waits for it. */
import { expect, test } from "bun:test";
import { basename, join } from "node:path";

const root = join(import.meta.dir, "..", "..", "..");

/** Modules of the runtime that the program's first file imports, and the bytes of our own, by way of others too, but not by `import()`. */
async function loadedAtOnce(
  file: string,
): Promise<{ readonly modules: readonly string[]; readonly bytes: number }> {
  const entry = join(root, "src", file);
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
    for (const [, path = ""] of (texts.get(name) ?? "").matchAll(
      /(?<!["-])(?:\bfrom|\bimport)\s*"([^"]+)"/g,
    )) {
      if (path.startsWith("./")) visit(path.slice(2));
      else modules.add(path);
    }
  };
  visit(basename(file).replace(".ts", ".js"));
  const bytes = [...seen].reduce((sum, name) => sum + (texts.get(name)?.length ?? 0), 0);
  return { modules: [...modules].toSorted(), bytes };
}

test.each(["cluster-cloud", "cluster-container", "cluster-vm"])(
  "%s begins with next to nothing",
  async (program) => {
    const { modules, bytes } = await loadedAtOnce(`bin/${program}.ts`);
    expect(modules).toEqual([]);
    expect(bytes).toBeWithin(500, 3_000);
  },
);

test.each([
  "backend/cloud/cloud-kind.ts",
  "backend/container/container-kind.ts",
  "backend/vm/vm-kind.ts",
  "commands/program.ts",
])("%s declares with little code, and with none of the runtime's heavy modules", async (path) => {
  const { modules, bytes } = await loadedAtOnce(path);
  // node:net alone, with its streams, takes as long as everything else together.
  expect(modules).toEqual([]);
  // All commands with their options and texts, about 4 kB each, and the kinds of faults, about 2 kB each.
  expect(bytes).toBeWithin(1_000, 108_000);
});
