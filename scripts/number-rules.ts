/**
 * Numbers the rules of test/specification.md in their order, and in the comments of the tests that name them. Until then a new rule may have any
 * unused id, such as `N1`.
 * Usage: bun run scripts/number-rules.ts
 */
import { join } from "node:path";

const tests = join(import.meta.dir, "..", "test");
const page = join(tests, "specification.md");
const idCell = /^\| ([A-Z]\w*\d) +\|/gm;
const rows = await Bun.file(page).text();
const ids = [...rows.matchAll(idCell)].map(([, id]) => id);
const number = (id: string): number => ids.indexOf(id) + 1;

await Bun.write(
  page,
  rows.replace(idCell, (_, id: string) => `| ${`R${number(id)}`.padEnd(4)} |`),
);
for (const file of new Bun.Glob("{unit,integration,e2e}/**/*.test.ts").scanSync(tests)) {
  const path = join(tests, file);
  const text = await Bun.file(path).text();
  const numbered = text.replace(/^( *\/\/ Shows )([A-Z][A-Z0-9, ]*)\.$/gm, (_, start: string, named: string) => {
    const numbers = named.split(", ").map(number);
    return `${start}${numbers
      .toSorted((one, other) => one - other)
      .map((each) => `R${each}`)
      .join(", ")}.`;
  });
  if (numbered !== text) await Bun.write(path, numbered);
}
