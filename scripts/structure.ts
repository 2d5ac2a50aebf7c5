/**
 * Measures the size and the coupling of this project's sources and of other checkouts (TypeScript or JavaScript). Prints
 * a table in Markdown with this project's goals, then the goals that it misses, its import cycles and upward imports.
 * Usage: bun run scripts/structure.ts [CHECKOUT...]
 */
import { basename, join, resolve } from "node:path";
import { measureCheckout } from "./structure/measure.ts";
import { patches, tryPatches } from "./structure/patches.ts";
import { missedGoals, structureTable } from "./structure/table.ts";

const own = join(import.meta.dir, "..");

const others = process.argv.slice(2).map((path) => resolve(path));
const columns = await Promise.all(
  [own, ...others].map(async (path) => ({
    name: path === own ? "this project" : basename(path),
    measures: await measureCheckout(path),
  })),
);
console.log(structureTable(columns));
const { files: touched, problem } = await tryPatches(own);
for (const [index, { name, most }] of patches.entries())
  console.log(`\nA patch, ${name}, touches ${touched[index]} source files; the most is ${most}.`);
if (problem !== undefined) console.log(`\nThe patches fail: ${problem}`);
const missed = columns[0] === undefined ? [] : missedGoals(columns[0].measures);
console.log(missed.length === 0 ? "\nAll goals are met." : `\nMisses its goal:\n${list(missed)}`);
const { cycles = [], upward = [] } = columns[0]?.measures.imports ?? {};
for (const files of cycles) console.log(`\nImport each other:\n${list(files)}`);
if (upward.length > 0) console.log(`\nImport upward:\n${list(upward)}`);

function list(entries: readonly string[]): string {
  return entries.map((entry) => `- ${entry}`).join("\n");
}
