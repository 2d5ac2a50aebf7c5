/**
 * Measures the size and the coupling of the sources. Prints a table in Markdown with the goals, then the goals that are missed, import cycles and
 * upward imports.
 * Usage: bun run scripts/structure.ts
 */
import { join } from "node:path";
import { measureSources } from "./structure/measure.ts";
import { patches, tryPatches } from "./structure/patches.ts";
import { missedGoals, structureTable } from "./structure/table.ts";

const root = join(import.meta.dir, "..");
const measures = await measureSources(root);
console.log(structureTable(measures));
const { files: touched, problem } = await tryPatches(root);
for (const [index, { name, most }] of patches.entries())
  console.log(`\nA patch, ${name}, touches ${touched[index]} source files; the most is ${most}.`);
if (problem !== undefined) console.log(`\nThe patches fail: ${problem}`);
const missed = missedGoals(measures);
console.log(missed.length === 0 ? "\nAll goals are met." : `\nMisses its goal:\n${list(missed)}`);
const { cycles, upward } = measures.imports;
for (const files of cycles) console.log(`\nImport each other:\n${list(files)}`);
if (upward.length > 0) console.log(`\nImport upward:\n${list(upward)}`);

function list(entries: readonly string[]): string {
  return entries.map((entry) => `- ${entry}`).join("\n");
}
