/**
 * Writes the manual pages, completions and licenses of all programs to `share/…` in a folder. Below a prefix such as
 * /usr/local, `man` and the shells find them there.
 * Usage: bun run scripts/documents.ts FOLDER
 */
import { join } from "node:path";
import { buildVersion } from "./build.ts";
import { declaredPrograms } from "./release/declarations.ts";
import { documents, sharedDocuments } from "./release/documents.ts";

async function main([folder]: readonly string[]): Promise<void> {
  if (folder === undefined) throw new Error("usage: bun run scripts/documents.ts FOLDER");
  const edition = { version: await buildVersion(), date: new Date().toISOString().slice(0, 10) };
  const root = join(import.meta.dir, "..");
  const programs = await declaredPrograms(root);
  for (const { name, from } of [
    ...programs.flatMap((program) => documents(program, edition)),
    ...sharedDocuments(root),
  ]) {
    await Bun.write(join(folder, name), "text" in from ? from.text : Bun.file(from.path));
  }
}

await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
