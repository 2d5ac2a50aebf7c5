/**
 * Lists regular expressions in src and scripts that can take more than linear time for some text. Exit code 1 if there are any.
 * Usage: bun run scripts/slow-expressions.ts
 */
import { join } from "node:path";
import { findSlowExpressions } from "./slow-expressions/find-slow-expressions.ts";

const root = join(import.meta.dir, "..");
const paths = [...new Bun.Glob("{src,scripts}/**/*.ts").scanSync(root)].toSorted();
for (const path of paths) {
  for (const { line, expression, problem } of findSlowExpressions(
    path,
    await Bun.file(join(root, path)).text(),
  )) {
    console.log(`${path}:${line}: ${expression} is ${problem}`);
    process.exitCode = 1;
  }
}
